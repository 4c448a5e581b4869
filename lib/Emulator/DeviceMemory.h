//===- DeviceMemory.h - Memory of the emulated GPUs -------------*- C++ -*-===//
//
// Host memory between pages that nobody may touch. An array ends where its
// guard begins, but for alignment to 16 bytes. Fresh memory is full of 0xFF
// bytes (NaN, -1), so that reading what nobody wrote shows in the results.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H
#define NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace neuroshard::emulator {

/// Device memory of every device: 80 GiB, of which this machine gives what it
/// has.
inline constexpr size_t kDeviceMemoryBytes = size_t{80} << 30;

/// Bytes of device `device`, at least one, 16-byte aligned; null if there is no
/// room.
void *allocateMemory(int device, size_t bytes);

enum class FreeResult {
  Freed,
  Unknown, // not the beginning of an allocation
  Damaged, // freed, but somebody had written beside it
};
FreeResult freeMemory(void *memory);

/// Frees all that a device has.
void freeDevice(int device);

/// True if an allocation has the bytes [address, address + bytes).
bool isAllocated(const void *address, size_t bytes);

/// True if some of the bytes lie in an allocation's mapping, where they can be
/// accessed, but not in the allocation.
bool isBesideAllocation(const void *address, size_t bytes);

/// The allocation that an address lies in; false if it lies in none.
bool findAllocation(const void *address, void *&begin, size_t &bytes,
                    int &device);

/// Bytes that the allocations of a device ask for.
size_t getAllocatedBytes(int device);

/// "address 0x..., 4 bytes past the end of 1024 bytes of device memory", or
/// "..., byte 16 of 1024 bytes of device memory".
std::string describeAddress(const void *address);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H
