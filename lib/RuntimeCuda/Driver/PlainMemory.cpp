//===- PlainMemory.cpp - Memory of a GPU for a device ---------------------===//

#include "PlainMemory.h"

namespace neuroshard::cuda {

std::byte *PlainMemory::allocate(int64_t bytes) {
  GpuScope scope(gpu);
  return reinterpret_cast<std::byte *>(gpu.allocate(bytes, ""));
}

void PlainMemory::free(std::byte *memory) noexcept {
  driver.ctxPushCurrent(gpu.context); // errors: the context may be lost
  driver.memFree(reinterpret_cast<CUdeviceptr>(memory));
  CUcontext popped = nullptr;
  driver.ctxPopCurrent(&popped);
}

std::byte *PlainMemory::reserve(int64_t bytes) {
  GpuScope scope(gpu);
  ReservedMemory reserved(gpu, bytes);
  std::byte *first = reserved.data();
  std::lock_guard lock(mutex);
  reservations.emplace(first, std::move(reserved));
  return first;
}

void PlainMemory::commit(std::byte *reserved, int64_t bytes) {
  GpuScope scope(gpu);
  std::lock_guard lock(mutex);
  reservations.at(reserved).commit(bytes);
}

void PlainMemory::release(std::byte *reserved) noexcept {
  std::lock_guard lock(mutex);
  reservations.erase(reserved);
}

void PlainMemory::clear(std::byte *memory, int64_t bytes) {
  if (bytes == 0)
    return;
  ContextScope scope(gpu);
  gpu.waitForAll();
  driver.check(driver.memsetD8Async(reinterpret_cast<CUdeviceptr>(memory), 0,
                                    static_cast<size_t>(bytes), nullptr),
               "clearing GPU memory");
  gpu.waitForAll();
}

void PlainMemory::read(void *to, const std::byte *from, int64_t bytes) {
  if (bytes == 0)
    return;
  ContextScope scope(gpu);
  gpu.waitForAll();
  driver.check(driver.memcpyDtoH(to, reinterpret_cast<CUdeviceptr>(from),
                                 static_cast<size_t>(bytes)),
               "copying from the GPU");
}

void PlainMemory::write(std::byte *to, const void *from, int64_t bytes) {
  if (bytes == 0)
    return;
  ContextScope scope(gpu);
  gpu.waitForAll();
  driver.check(driver.memcpyHtoD(reinterpret_cast<CUdeviceptr>(to), from,
                                 static_cast<size_t>(bytes)),
               "copying to the GPU");
  gpu.waitForAll(); // a copy from pageable memory may return early
}

} // namespace neuroshard::cuda
