//===- Memory.cpp - Memory functions of the driver ------------------------===//
//
// Copies and fills must stay inside one allocation. Asynchronous copies must
// use pinned host memory.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"
#include "Driver.h"
#include "Launch.h"
#include "StreamRaces.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

using namespace neuroshard::emulator;

namespace {
/// Success if one allocation has the `bytes` from `pointer` on.
CUresult checkRange(CUdeviceptr pointer, size_t bytes) {
  void *address = toPointer(pointer);
  if (bytes == 0 || isAllocated(address, bytes))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              std::to_string(bytes) +
                  " bytes of no allocation: " + describeAddress(address));
}

/// The host memory that cuMemAllocHost has given.
class PinnedMemory {
public:
  void add(void *pointer, size_t bytes) {
    std::lock_guard lock(mutex);
    blocks[reinterpret_cast<uintptr_t>(pointer)] = bytes;
  }
  bool remove(void *pointer) {
    std::lock_guard lock(mutex);
    return blocks.erase(reinterpret_cast<uintptr_t>(pointer)) > 0;
  }
  std::optional<DriverArray> find(const void *pointer, size_t bytes) {
    std::lock_guard lock(mutex);
    auto after = blocks.upper_bound(reinterpret_cast<uintptr_t>(pointer));
    if (after == blocks.begin())
      return std::nullopt;
    auto [begin, size] = *std::prev(after);
    if (reinterpret_cast<uintptr_t>(pointer) - begin + bytes > size)
      return std::nullopt;
    return DriverArray{begin, size, /*isPinned=*/true};
  }
  bool contains(const void *pointer, size_t bytes) {
    return find(pointer, bytes).has_value();
  }
  int64_t bytes() {
    std::lock_guard lock(mutex);
    int64_t all = 0;
    for (auto [begin, size] : blocks)
      all += static_cast<int64_t>(size);
    return all;
  }

private:
  std::mutex mutex;
  std::map<uintptr_t, size_t> blocks;
};
PinnedMemory pinned;

CUresult checkHost(const void *memory, size_t bytes) {
  if (memory || bytes == 0)
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE, "a copy of host memory at null");
}

/// checkCall, and an error if an asynchronous copy uses pageable host memory:
/// CUDA would let the caller wait, or, in a graph, copy the memory as it is
/// when the graph runs.
CUresult checkAsync(CUstream stream, const void *memory, size_t bytes,
                    Queue &queue) {
  if (CUresult result = checkCall(stream, &queue))
    return result;
  if (bytes == 0 || pinned.contains(memory, bytes))
    return CUDA_SUCCESS;
  return fail(CUDA_ERROR_INVALID_VALUE,
              "an asynchronous copy of host memory that is not pinned");
}

CUresult copy(const Queue &queue, void *to, const void *from, size_t bytes) {
  if (bytes == 0)
    return CUDA_SUCCESS;
  auto run = [=](Accesses *accesses) {
    MemoryUse use({to, from});
    std::memmove(to, from, bytes);
    if (accesses) {
      accesses->add(from, bytes, NSE_READ);
      accesses->add(to, bytes, NSE_WRITE);
    }
    return CUDA_SUCCESS;
  };
  return submit(queue, {"copy of " + std::to_string(bytes) + " bytes", run});
}

CUresult copyToDevice(const Queue &queue, CUdeviceptr to, const void *from,
                      size_t bytes) {
  if (CUresult result = checkHost(from, bytes))
    return result;
  if (CUresult result = checkRange(to, bytes))
    return result;
  return copy(queue, toPointer(to), from, bytes);
}

CUresult copyToHost(const Queue &queue, void *to, CUdeviceptr from,
                    size_t bytes) {
  if (CUresult result = checkHost(to, bytes))
    return result;
  if (CUresult result = checkRange(from, bytes))
    return result;
  return copy(queue, to, toPointer(from), bytes);
}

CUresult copyOnDevice(const Queue &queue, CUdeviceptr to, CUdeviceptr from,
                      size_t bytes) {
  if (CUresult result = checkRange(to, bytes))
    return result;
  return copyToHost(queue, toPointer(to), from, bytes);
}

/// Does what `copies` gives to the default stream, and waits for it.
template <typename Copy> CUresult andWait(Copy copies) {
  Queue queue;
  if (CUresult result = checkSynchronous(&queue))
    return result;
  if (CUresult result = copies(queue))
    return result;
  return finish(queue);
}

template <typename Value>
CUresult fill(const Queue &queue, CUdeviceptr to, Value value, size_t count) {
  if (to % sizeof(Value) != 0)
    return fail(CUDA_ERROR_INVALID_VALUE, "a fill of misaligned memory");
  if (CUresult result = checkRange(to, count * sizeof(Value)))
    return result;
  size_t bytes = count * sizeof(Value);
  auto run = [=](Accesses *accesses) {
    MemoryUse use({toPointer(to)});
    std::fill_n(static_cast<Value *>(toPointer(to)), count, value);
    if (accesses)
      accesses->add(toPointer(to), bytes, NSE_WRITE);
    return CUDA_SUCCESS;
  };
  return submit(queue, {"fill of " + std::to_string(bytes) + " bytes", run});
}

/// Waits for the device of an allocation, as cuMemFree does.
void finishUsersOf(const void *pointer) {
  void *begin;
  size_t bytes;
  int device = 0;
  if (!findAllocation(pointer, begin, bytes, device))
    return;
  CurrentDevice current(device);
  finishDevice(device); // an error comes up at the next call
}
} // namespace

bool neuroshard::emulator::isDriverMemory(const void *address, size_t bytes) {
  return isAllocated(address, bytes) || pinned.contains(address, bytes);
}

std::optional<DriverArray>
neuroshard::emulator::findDriverArray(const void *address) {
  void *begin;
  size_t bytes;
  int device;
  if (findAllocation(address, begin, bytes, device))
    return DriverArray{reinterpret_cast<uintptr_t>(begin), bytes,
                       /*isPinned=*/false};
  return pinned.find(address, 1);
}

EMULATOR_EXPORT CUresult cuMemGetInfo_v2(size_t *freeBytes,
                                         size_t *totalBytes) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  *totalBytes = kDeviceMemoryBytes;
  *freeBytes = kDeviceMemoryBytes - getAllocatedBytes(device);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes) {
  int device = 0;
  if (CUresult result = checkContext(&device))
    return result;
  if (CUresult result = checkUncaptured())
    return result;
  if (bytes == 0)
    return fail(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  void *memory =
      allocateMemory(device, bytes, /*hidden=*/usesOwnMemoryFromEnvironment());
  if (!memory)
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "no room for " + std::to_string(bytes) + " bytes");
  *pointer = reinterpret_cast<uintptr_t>(memory);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer) {
  if (CUresult result = checkInitialized())
    return result;
  if (pointer == 0)
    return CUDA_SUCCESS;
  finishUsersOf(toPointer(pointer));
  streamRaces().forget(toPointer(pointer));
  std::string where = describeAddress(toPointer(pointer));
  switch (freeMemory(toPointer(pointer))) {
  case FreeResult::Freed:
    return CUDA_SUCCESS;
  case FreeResult::Unknown:
    return fail(CUDA_ERROR_INVALID_VALUE,
                "free of what is no allocation: " + where);
  case FreeResult::Damaged:
    break;
  }
  return fail(CUDA_ERROR_ILLEGAL_ADDRESS,
              "somebody wrote just beside an allocation: " + where);
}

EMULATOR_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes) {
  if (CUresult result = checkContext())
    return result;
  if (bytes == 0)
    return fail(CUDA_ERROR_INVALID_VALUE, "an allocation of 0 bytes");
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*pointer)
    return fail(CUDA_ERROR_OUT_OF_MEMORY,
                "no " + std::to_string(bytes) + " bytes of host memory");
  std::memset(*pointer, kFreshByte, bytes);
  pinned.add(*pointer, bytes);
  return CUDA_SUCCESS;
}

/// For tests: bytes of pinned host memory that the process has.
EMULATOR_EXPORT int64_t nse_pinned_bytes() { return pinned.bytes(); }

EMULATOR_EXPORT CUresult cuMemFreeHost(void *pointer) {
  if (CUresult result = checkInitialized())
    return result;
  if (!pinned.contains(pointer, 1))
    return fail(CUDA_ERROR_INVALID_VALUE,
                "free of host memory that cuMemAllocHost did not give");
  finishAll();
  streamRaces().forget(pointer);
  pinned.remove(pointer);
  std::free(pointer);
  return CUDA_SUCCESS;
}

EMULATOR_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from,
                                         size_t bytes) {
  return andWait(
      [=](const Queue &queue) { return copyToDevice(queue, to, from, bytes); });
}

EMULATOR_EXPORT CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from,
                                         size_t bytes) {
  return andWait(
      [=](const Queue &queue) { return copyToHost(queue, to, from, bytes); });
}

EMULATOR_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from,
                                         size_t bytes) {
  return andWait(
      [=](const Queue &queue) { return copyOnDevice(queue, to, from, bytes); });
}

EMULATOR_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                              size_t bytes, CUstream stream) {
  Queue queue;
  CUresult result = checkAsync(stream, from, bytes, queue);
  return result ? result : copyToDevice(queue, to, from, bytes);
}

EMULATOR_EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from,
                                              size_t bytes, CUstream stream) {
  Queue queue;
  CUresult result = checkAsync(stream, to, bytes, queue);
  return result ? result : copyToHost(queue, to, from, bytes);
}

EMULATOR_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                              size_t bytes, CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  return result ? result : copyOnDevice(queue, to, from, bytes);
}

/// The contexts are those of the devices that have the memory.
EMULATOR_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext,
                                           CUdeviceptr from, CUcontext,
                                           size_t bytes, CUstream stream) {
  return cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

EMULATOR_EXPORT CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value,
                                       size_t count) {
  return andWait([=](const Queue &queue) {
    return fill<uint8_t>(queue, to, value, count);
  });
}

EMULATOR_EXPORT CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value,
                                        size_t count) {
  return andWait([=](const Queue &queue) {
    return fill<uint32_t>(queue, to, value, count);
  });
}

EMULATOR_EXPORT CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                         size_t count, CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  return result ? result : fill<uint8_t>(queue, to, value, count);
}

EMULATOR_EXPORT CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch,
                                            unsigned value, size_t width,
                                            size_t height, CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  if (!result && pitch < width * sizeof(uint32_t))
    result = CUDA_ERROR_INVALID_VALUE;
  for (size_t row = 0; !result && row < height; ++row)
    result = fill<uint32_t>(queue, to + row * pitch, value, width);
  return result;
}

EMULATOR_EXPORT CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value,
                                          size_t count, CUstream stream) {
  Queue queue;
  CUresult result = checkCall(stream, &queue);
  return result ? result : fill<uint32_t>(queue, to, value, count);
}
