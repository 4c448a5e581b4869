//===- UploadRing.h - Copies to the GPU that nobody waits for ---*- C++ -*-===//
//
// Asynchronous copies read pinned memory when their stream reaches them. What
// is to be copied is put into chunks of such memory, which are used again once
// their copies are done.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_UPLOADRING_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_UPLOADRING_H

#include "GpuMemory.h"

#include <cstddef>
#include <list>
#include <span>

namespace neuroshard::cuda {

class UploadRing {
public:
  explicit UploadRing(const Gpu &gpu) : gpu(gpu) {}

  /// Copies in the order of the stream, which must come after that of the
  /// upload before, if it is another one. `bytes` may change after the call.
  void upload(CUdeviceptr to, std::span<const std::byte> bytes,
              CUstream stream);

private:
  struct Chunk {
    Chunk(const Gpu &gpu, int64_t bytes) : memory(gpu, bytes), read(gpu) {}
    PinnedBlock memory;
    int64_t used = 0;
    Event read; ///< all copies from it are done.
  };

  Chunk &roomFor(int64_t bytes);

  const Gpu &gpu;
  std::list<Chunk> chunks; ///< by their last use.
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_UPLOADRING_H
