//===- SumRows.cpp - Sums of gradients by row on CPUs ---------------------===//

#include "CpuUpdate.h"
#include "neuroshard/Support/InstructionSets.h"

#include <algorithm>

namespace neuroshard::runtime {

void CpuUpdate::sumRows() {
  makeTasks();
  for (SlotUpdate &update : updates)
    if (update.numIds > 0 && !update.reduced)
      update.reduced = buffers.acquireArray<float>(
          BufferKind::Norms, update.sorted->numRows * strideOf(update));
  threads.parallelFor(static_cast<int64_t>(tasks.size()), [&](int64_t i) {
    sumRows(tasks[static_cast<size_t>(i)]);
  });
}

void CpuUpdate::sumRows(const Task &task) const {
  const SlotUpdate &update = *task.update;
  const auto *segments = as<const int64_t>(update.sorted->segments);
  const auto *offsets = as<const int64_t>(update.gradientOffsets);
  const auto *weights = as<const float>(update.sampleWeights);
  int64_t width = kernelsOf(update).dim, stride = strideOf(update);
  runWithWidestVectors([&]() NEUROSHARD_INLINE {
    for (int64_t row = task.begin; row < task.end; ++row) {
      float *__restrict sum = as<float>(update.reduced) + row * stride;
      std::fill_n(sum, stride, 0.0f);
      for (int64_t k = segments[row]; k < segments[row + 1]; ++k) {
        const float *__restrict gradient = update.gradients + offsets[k];
        float weight = weights ? weights[k] : 1.0f;
        for (int64_t c = 0; c < width; ++c)
          sum[c] += weight * gradient[c];
      }
    }
  });
}

int64_t CpuUpdate::numRows(int32_t slot) const {
  const SlotUpdate &update = updateOf(slot);
  return update.sorted ? update.sorted->numRows : 0;
}

void CpuUpdate::writeRows(int32_t slot, int32_t idBytes, std::byte *to) const {
  const auto *rows = as<const int64_t>(updateOf(slot).sorted->rows);
  int64_t count = numRows(slot);
  if (idBytes == sizeof(int32_t))
    std::transform(rows, rows + count, reinterpret_cast<int32_t *>(to),
                   [](int64_t row) { return static_cast<int32_t>(row); });
  else
    std::copy_n(rows, count, reinterpret_cast<int64_t *>(to));
}

const float *CpuUpdate::sums(int32_t slot) const {
  return as<const float>(updateOf(slot).reduced);
}

} // namespace neuroshard::runtime
