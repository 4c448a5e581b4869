//===- CachedRows.cpp - Rows that a batch needs in caches of a GPU --------===//

#include "CachedRows.h"

#include <vector>

namespace neuroshard::cuda {

using namespace runtime;

static void makeRoom(const Gpu &gpu, PinnedBlock &block, int64_t bytes) {
  if (block.size() >= bytes)
    return;
  block = {}; // free the old memory first
  block = PinnedBlock(gpu, bytes + bytes / 2);
}

std::unique_ptr<RowsInUse>
CachedRows::fetch(std::span<const CachedLookup> lookups, CUstream stream) {
  std::vector<int64_t> begins;
  int64_t bytes = 0;
  for (const CachedLookup &lookup : lookups) {
    begins.push_back(bytes);
    auto index = static_cast<size_t>(lookup.lookup);
    bytes += lookup.numIds * binding.program.lookups[index].idBytes;
  }
  begins.push_back(bytes);
  auto sizeOf = [&](size_t i) {
    return static_cast<size_t>(begins[i + 1] - begins[i]);
  };
  placesRead.wait();
  makeRoom(gpu, ids, bytes);
  makeRoom(gpu, places, bytes);
  std::vector<CachedLookup> onHost(lookups.begin(), lookups.end());
  for (size_t i = 0; i < onHost.size(); ++i) {
    std::byte *to = ids.data() + begins[i];
    if (sizeOf(i) > 0)
      gpu.driver.check(gpu.driver.memcpyDtoHAsync(
                           to, reinterpret_cast<CUdeviceptr>(lookups[i].ids),
                           sizeOf(i), stream),
                       "copying ids from the GPU");
    onHost[i].ids = to;
    onHost[i].places = places.data() + begins[i];
  }
  gpu.driver.check(gpu.driver.streamSynchronize(stream), "waiting for ids");
  std::unique_ptr<RowsInUse> rows = host.fetchRows(onHost);
  for (size_t i = 0; i < onHost.size(); ++i)
    if (sizeOf(i) > 0)
      gpu.driver.check(gpu.driver.memcpyHtoDAsync(
                           reinterpret_cast<CUdeviceptr>(lookups[i].places),
                           onHost[i].places, sizeOf(i), stream),
                       "copying places of rows to the GPU");
  placesRead.record(stream);
  return rows;
}

} // namespace neuroshard::cuda
