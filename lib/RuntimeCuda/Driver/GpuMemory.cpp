//===- GpuMemory.cpp - Memory of a GPU, and pinned host memory ------------===//
//
// Destructors ignore errors, since the context may be lost.
//
//===----------------------------------------------------------------------===//

#include "GpuMemory.h"
#include "Status.h"

namespace neuroshard::cuda {

DeviceBlock::DeviceBlock(const Gpu &gpu, int64_t bytes,
                         const std::string &purpose)
    : gpu(&gpu) {
  if (bytes == 0)
    return;
  pointer = gpu.allocate(bytes, purpose);
  this->bytes = bytes;
}

DeviceBlock::~DeviceBlock() {
  if (!pointer)
    return;
  gpu->driver.ctxPushCurrent(gpu->context);
  gpu->driver.memFree(pointer);
  CUcontext popped = nullptr;
  gpu->driver.ctxPopCurrent(&popped);
}

void DeviceBlock::swap(DeviceBlock &other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(pointer, other.pointer);
  std::swap(bytes, other.bytes);
}

PinnedBlock::PinnedBlock(const Gpu &gpu, int64_t bytes) : gpu(&gpu) {
  if (bytes == 0)
    return;
  CUresult result =
      gpu.driver.memAllocHost(&pointer, static_cast<size_t>(bytes));
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    failWith(NSC_OUT_OF_MEMORY, "no pinned host memory: ", bytes,
             " bytes asked for");
  gpu.driver.check(result, "allocating pinned host memory");
  this->bytes = bytes;
}

PinnedBlock::~PinnedBlock() {
  if (!pointer)
    return;
  gpu->driver.ctxPushCurrent(gpu->context);
  gpu->driver.memFreeHost(pointer);
  CUcontext popped = nullptr;
  gpu->driver.ctxPopCurrent(&popped);
}

void PinnedBlock::swap(PinnedBlock &other) noexcept {
  std::swap(gpu, other.gpu);
  std::swap(pointer, other.pointer);
  std::swap(bytes, other.bytes);
}

} // namespace neuroshard::cuda
