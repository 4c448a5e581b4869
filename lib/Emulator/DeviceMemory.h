//===- DeviceMemory.h - Memory of the emulated GPUs -------------*- C++ -*-===//
//
// Host memory between inaccessible guard pages. An array ends where its guard
// begins, but for alignment to 16 bytes. New memory is filled with 0xFF bytes
// (NaN, -1), so that reads of uninitialised memory show in the results.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H
#define NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace neuroshard::emulator {

/// What every byte of new memory is.
inline constexpr int kFreshByte = 0xFF;

/// Reported memory of each device. Allocations fail when this machine has no
/// more.
inline constexpr size_t kDeviceMemoryBytes = size_t{80} << 30;

/// Allocates at least one byte on a device, 16-byte aligned. Null if there is
/// no room. Accesses of the host to `hidden` memory fault.
void *allocateMemory(int device, size_t bytes, bool hidden = false);

/// Reserves page-aligned addresses without memory. Null if there is no room.
void *reserveAddresses(size_t bytes, bool hidden = false);
/// Gives memory of a device to the addresses behind those that have some: false
/// if `place` is no such address or there is no room.
bool commitMemory(void *place, size_t bytes, int device);
/// Takes the last of it back: false if that is not at `place`.
bool uncommitMemory(void *place, size_t bytes);
/// Frees addresses without memory: false if they are not.
bool freeAddresses(void *begin);

/// A use of hidden memory, by a kernel or a copy. What is shown can be used
/// while one lives.
class MemoryUse {
public:
  /// Shows the memory of some arrays; others may come up in faults.
  explicit MemoryUse(std::initializer_list<const void *> arrays = {});
  ~MemoryUse();
  MemoryUse(const MemoryUse &) = delete;
  MemoryUse &operator=(const MemoryUse &) = delete;
};

/// Shows the hidden memory that has the address, at the first use of it: a use
/// of each allocation would take as long as a small kernel. False if it has
/// none, or no MemoryUse lives.
bool showMemory(const void *address);

enum class FreeResult {
  Freed,
  Unknown, // not the beginning of an allocation
  Damaged, // freed, but bytes beside it were overwritten
};
FreeResult freeMemory(void *memory);

/// Frees all memory of a device.
void freeDevice(int device);

/// Whether one allocation has all of the bytes.
bool isAllocated(const void *address, size_t bytes);

/// Whether one allocation, of a device or of pinned host memory, has all of the
/// bytes.
bool isDriverMemory(const void *address, size_t bytes);

/// An allocation of a device, or of pinned host memory.
struct DriverArray {
  uintptr_t begin;
  size_t bytes;
  bool isPinned;
};
/// The allocation that has the address, if there is one.
std::optional<DriverArray> findDriverArray(const void *address);

/// Whether some of the bytes lie in an allocation's mapping, where accesses do
/// not fault, but not in the allocation.
bool isBesideAllocation(const void *address, size_t bytes);

/// Finds the allocation that has the address. Returns false if there is none.
bool findAllocation(const void *address, void *&begin, size_t &bytes,
                    int &device);

/// Sum of the sizes of a device's allocations.
size_t getAllocatedBytes(int device);

/// "address 0x..., 4 bytes past the end of 1024 bytes of device memory", or
/// "..., byte 16 of 1024 bytes of device memory".
std::string describeAddress(const void *address);

} // namespace neuroshard::emulator

#endif // NEUROSHARD_LIB_EMULATOR_DEVICEMEMORY_H
