//===- UpdateBuffers.cpp - Device memory of an update on a GPU ------------===//

#include "neuroshard/Artifact/UpdateBuffers.h"

#include "neuroshard/RuntimeCuda/GpuKernelABI.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>

namespace neuroshard {

static_assert(kChunkIds == NSG_CHUNK);

/// No value of `asked` is above that of `had`.
static bool areAtMost(const std::vector<int64_t> &asked,
                      const std::vector<int64_t> &had) {
  for (size_t i = 0; i < asked.size(); ++i)
    if (asked[i] > had[i])
      return false;
  return true;
}

bool UpdateNeeds::covers(const UpdateNeeds &other) const {
  return other.positions <= positions && other.sortBytes <= sortBytes &&
         areAtMost(other.reducedRows, reducedRows);
}

UpdateBuffers layOutUpdate(const UpdateRows &rows, const UpdateNeeds &needs,
                           int64_t alignment) {
  UpdateBuffers result = {};
  auto take = [&](int64_t bytes) {
    int64_t offset = result.bytes;
    result.bytes += roundUp(bytes, alignment);
    return offset;
  };
  int64_t n = needs.positions;
  result.keys = take(n * rows.keyBytes);
  result.sortedKeys = take(n * rows.keyBytes);
  result.iota = take(n * 4);
  result.order = take(n * 4);
  result.starts = take((n + 1) * 4);
  result.offsets = take(n * 8);
  result.factors = take(rows.hasFactors ? n * 4 : 0);
  result.numRuns = take(4);
  result.runBegin =
      take(static_cast<int64_t>(rows.reducedStride.size() + 1) * 4);
  result.sortTemp = take(needs.sortBytes);
  result.partials = take(n / kChunkIds * rows.widest * 4);
  for (size_t i = 0; i < rows.reducedStride.size(); ++i) {
    int64_t count = rows.reducedStride[i] > 0 ? needs.reducedRows[i] : 0;
    result.reduced.push_back(take(count * rows.reducedStride[i] * 4));
    result.norms.push_back(take(count * rows.normsPerRow[i] * 4));
  }
  return result;
}

} // namespace neuroshard
