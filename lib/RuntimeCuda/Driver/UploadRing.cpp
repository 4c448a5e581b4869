//===- UploadRing.cpp - Copies to the GPU that nobody waits for -----------===//

#include "UploadRing.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::cuda {

namespace {
constexpr int64_t kRingChunkBytes = int64_t{1} << 20;
} // namespace

UploadRing::Chunk &UploadRing::roomFor(int64_t bytes) {
  if (!chunks.empty()) {
    Chunk &last = chunks.back();
    if (last.used + bytes <= last.memory.size())
      return last;
  }
  // Chunks that are too small go when they are in the way.
  while (!chunks.empty() && chunks.front().read.isDone()) {
    Chunk &oldest = chunks.front();
    if (oldest.memory.size() >= bytes) {
      oldest.used = 0;
      chunks.splice(chunks.end(), chunks, chunks.begin());
      return oldest;
    }
    chunks.pop_front();
  }
  return chunks.emplace_back(gpu, std::max(kRingChunkBytes, bytes));
}

void UploadRing::upload(CUdeviceptr to, std::span<const std::byte> bytes,
                        CUstream stream) {
  if (bytes.empty())
    return;
  Chunk &chunk = roomFor(static_cast<int64_t>(bytes.size()));
  std::byte *from = chunk.memory.data() + chunk.used;
  std::memcpy(from, bytes.data(), bytes.size());
  chunk.used += static_cast<int64_t>(bytes.size());
  gpu.driver.check(gpu.driver.memcpyHtoDAsync(to, from, bytes.size(), stream),
                   "uploading the arguments of kernels");
  chunk.read.record(stream);
}

} // namespace neuroshard::cuda
