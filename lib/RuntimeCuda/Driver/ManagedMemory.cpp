//===- ManagedMemory.cpp - Memory that host and GPU share -----------------===//

#include "ManagedMemory.h"
#include "Status.h"
#include "neuroshard/Support/Round.h"

#include <utility>

namespace neuroshard::cuda {

namespace {

constexpr int64_t kAlignmentBytes = 64;

} // namespace

ManagedMemory::ManagedMemory(std::shared_ptr<const CudaDriver> loaded,
                             int ordinal)
    : driver(std::move(loaded)), gpu(*driver, ordinal) {
  if (!driver->memAllocManaged)
    fail("'", driver->name, "' has no managed memory (cuMemAllocManaged)");
  int isConcurrent = 0;
  driver->check(driver->deviceGetAttribute(
                    &isConcurrent,
                    CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, gpu.device),
                "asking for an attribute of the GPU");
  if (!isConcurrent)
    fail(gpu.name, " cannot use managed memory while the host does; expected a "
                   "GPU of compute capability 6.0 or later on Linux");
}

std::byte *ManagedMemory::allocate(int64_t bytes) {
  ContextScope scope(gpu);
  auto rounded = static_cast<size_t>(roundUp(bytes, kAlignmentBytes));
  CUdeviceptr pointer = 0;
  CUresult result =
      driver->memAllocManaged(&pointer, rounded, CU_MEM_ATTACH_GLOBAL);
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    failWith(NSC_OUT_OF_MEMORY, "no memory that ", gpu.name,
             " and the host share: ", bytes, " bytes asked for");
  driver->check(result, "allocating managed memory");
  auto *memory = reinterpret_cast<std::byte *>(pointer);
  try {
    driver->check(driver->memsetD8Async(pointer, 0, rounded, nullptr),
                  "filling managed memory");
    driver->check(driver->streamSynchronize(nullptr), "waiting for the GPU");
  } catch (...) {
    free(memory);
    throw;
  }
  return memory;
}

void ManagedMemory::free(std::byte *memory) noexcept {
  driver->ctxPushCurrent(gpu.context); // errors: the context may be lost
  driver->memFree(reinterpret_cast<CUdeviceptr>(memory));
  CUcontext popped = nullptr;
  driver->ctxPopCurrent(&popped);
}

} // namespace neuroshard::cuda
