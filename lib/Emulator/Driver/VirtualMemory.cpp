//===- VirtualMemory.cpp - Memory that is mapped at reserved addresses ----===//
//
// Addresses get their memory one piece behind the other, and lose the last
// piece first.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "Driver.h"
#include "Launch.h"
#include "StreamRaces.h"

#include <cstdint>
#include <map>
#include <mutex>

using namespace neuroshard::emulator;

namespace {
bool isWhole(size_t bytes) {
  return bytes > 0 && bytes % getGranularityFromEnvironment() == 0;
}

/// Memory that was created and is not released.
struct Piece {
  size_t bytes;
  int device;
};
std::mutex mutex;
std::map<CUmemHandle, Piece> pieces;
CUmemHandle lastPiece = 0;
} // namespace

EMULATOR_EXPORT CUresult
cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *, int) {
  if (CUresult result = checkInitialized())
    return result;
  *bytes = getGranularityFromEnvironment();
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t bytes,
                                             size_t, CUdeviceptr,
                                             unsigned long long) {
  if (CUresult result = checkInitialized())
    return result;
  if (!isWhole(bytes))
    return fail(CUDA_ERROR_INVALID_VALUE,
                "addresses for " + std::to_string(bytes) + " bytes");
  void *begin = reserveAddresses(bytes, usesOwnMemoryFromEnvironment());
  if (!begin)
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "no addresses for " + std::to_string(bytes) + " bytes");
  *pointer = reinterpret_cast<uintptr_t>(begin);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemAddressFree(CUdeviceptr pointer, size_t) {
  streamRaces().forget(toPointer(pointer));
  if (freeAddresses(toPointer(pointer)))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              "free of what are no addresses without memory: " +
                  describeAddress(toPointer(pointer)));
}

EMULATOR_EXPORT CUresult cuMemCreate(CUmemHandle *memory, size_t bytes,
                                     const CUmemAllocationProp *kind,
                                     unsigned long long) {
  if (CUresult result = checkInitialized())
    return result;
  if (!isWhole(bytes))
    return fail(CUDA_ERROR_INVALID_VALUE,
                "memory of " + std::to_string(bytes) + " bytes");
  if (bytes > kDeviceMemoryBytes - getAllocatedBytes(kind->location.id))
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "no room for " + std::to_string(bytes) + " bytes");
  std::lock_guard lock(mutex);
  pieces[++lastPiece] = {bytes, kind->location.id};
  *memory = lastPiece;
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemRelease(CUmemHandle memory) {
  std::lock_guard lock(mutex);
  return pieces.erase(memory) > 0
             ? CUDA_SUCCESS
             : fail(CUDA_ERROR_INVALID_VALUE, "release of unknown memory");
}

EMULATOR_EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t,
                                  CUmemHandle memory, unsigned long long) {
  if (CUresult result = checkUncaptured())
    return result;
  std::lock_guard lock(mutex);
  auto found = pieces.find(memory);
  if (found == pieces.end() || found->second.bytes != bytes)
    return fail(CUDA_ERROR_INVALID_VALUE, "mapping of unknown memory");
  if (commitMemory(toPointer(pointer), bytes, found->second.device))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              "memory of " + std::to_string(bytes) +
                  " bytes where no reserved addresses go on: " +
                  describeAddress(toPointer(pointer)));
}

EMULATOR_EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes) {
  if (CUresult result = checkInitialized())
    return result;
  finishAll();
  if (uncommitMemory(toPointer(pointer), bytes))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              "unmapping of what does not end mapped addresses: " +
                  describeAddress(toPointer(pointer)));
}

EMULATOR_EXPORT CUresult cuMemSetAccess(CUdeviceptr pointer, size_t bytes,
                                        const CUmemAccessDesc *, size_t) {
  if (isAllocated(toPointer(pointer), bytes))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              "access to addresses without memory: " +
                  describeAddress(toPointer(pointer)));
}
