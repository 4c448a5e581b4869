//===- ReservedMemory.cpp - Addresses of a GPU whose memory grows ---------===//
//
// The destructor ignores errors, since the context may be lost.
//
//===----------------------------------------------------------------------===//

#include "ReservedMemory.h"
#include "Status.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <utility>

namespace neuroshard::cuda {

static CUmemAllocationProp memoryOf(const Gpu &gpu) {
  CUmemAllocationProp kind;
  kind.location.id = gpu.device;
  return kind;
}

ReservedMemory::ReservedMemory(const Gpu &gpu, int64_t bytes) : gpu(gpu) {
  if (!gpu.driver.memAddressReserve)
    failWith(NSC_NO_DRIVER, "the CUDA driver ", gpu.driver.name,
             " cannot reserve addresses, as caches of rows need");
  CUmemAllocationProp kind = memoryOf(gpu);
  gpu.driver.check(gpu.driver.memGetAllocationGranularity(&granularity, &kind,
                                                          /*minimum=*/0),
                   "asking for the size of pages of GPU memory");
  reserved = rounded(std::max<int64_t>(1, bytes));
  gpu.driver.check(gpu.driver.memAddressReserve(&first, reserved, 0, 0, 0),
                   "reserving addresses of GPU memory");
}

size_t ReservedMemory::rounded(int64_t bytes) const {
  return static_cast<size_t>(roundUp(bytes, static_cast<int64_t>(granularity)));
}

ReservedMemory::ReservedMemory(ReservedMemory &&other) noexcept
    : gpu(other.gpu), first(std::exchange(other.first, 0)),
      reserved(other.reserved), granularity(other.granularity),
      committed(other.committed), pieces(std::exchange(other.pieces, {})) {}

ReservedMemory::~ReservedMemory() {
  if (!first)
    return;
  gpu.driver.ctxPushCurrent(gpu.context);
  if (gpu.driver.ctxSynchronize) // kernels may still use it
    gpu.driver.ctxSynchronize();
  for (; !pieces.empty(); pieces.pop_back()) {
    committed -= pieces.back().bytes;
    gpu.driver.memUnmap(first + committed, pieces.back().bytes);
    gpu.driver.memRelease(pieces.back().memory);
  }
  gpu.driver.memAddressFree(first, reserved);
  CUcontext popped = nullptr;
  gpu.driver.ctxPopCurrent(&popped);
}

void ReservedMemory::commit(int64_t bytes) {
  size_t wanted = rounded(bytes);
  if (wanted <= committed)
    return;
  CUmemAllocationProp kind = memoryOf(gpu);
  Piece piece = {0, wanted - committed};
  gpu.allocateBy(
      [&] {
        return gpu.driver.memCreate(&piece.memory, piece.bytes, &kind, 0);
      },
      static_cast<int64_t>(piece.bytes), "more of a cache of rows");
  CUdeviceptr place = first + committed;
  CUmemAccessDesc access;
  access.location = kind.location;
  CUresult result = gpu.driver.memMap(place, piece.bytes, 0, piece.memory, 0);
  if (result == CUDA_SUCCESS) {
    result = gpu.driver.memSetAccess(place, piece.bytes, &access, 1);
    if (result != CUDA_SUCCESS)
      gpu.driver.memUnmap(place, piece.bytes);
  }
  if (result != CUDA_SUCCESS)
    gpu.driver.memRelease(piece.memory);
  gpu.driver.check(result, "mapping GPU memory");
  pieces.push_back(piece);
  committed = wanted;
}

} // namespace neuroshard::cuda
