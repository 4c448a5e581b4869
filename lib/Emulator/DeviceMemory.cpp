//===- DeviceMemory.cpp - Memory of the emulated GPUs ---------------------===//
//
// Every allocation is a mapping of its own: guard, slack, array, guard. Freeing
// checks the slack before the array and the up to 15 bytes behind it.
//
//===----------------------------------------------------------------------===//

#include "DeviceMemory.h"

#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace neuroshard::emulator {

namespace {
constexpr size_t kAlignment = 16;

struct Allocation {
  std::byte *mapping;
  size_t mappedBytes;
  size_t usableBytes; ///< behind the first guard.
  size_t bytes;
  int device;
  bool hidden;
  bool isReserved = false; ///< `bytes` may grow.
  bool isShown = false;    ///< of hidden memory, while it is used.

  std::byte *usable() const;
  bool has(const std::byte *address) const {
    return address >= usable() && address < usable() + usableBytes;
  }
};

std::mutex mutex;
int numUses = 0; ///< MemoryUses that live.
/// The arrays of hidden memory that these have shown; some may be freed.
std::vector<const std::byte *> shownArrays;
/// All allocations by the address of the array. Never destroyed: kernels may
/// run at exit.
std::map<const std::byte *, Allocation> &getAllocations() {
  static auto *allocations = new std::map<const std::byte *, Allocation>();
  return *allocations;
}

size_t getPageBytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Of each of the two guards, which take address space alone. Wider than the
/// distance between the rows that one thread or block goes through, so that a
/// wrong stride does not step over it.
size_t getGuardBytes() { return roundUp(size_t{1} << 20, getPageBytes()); }

/// Whether no byte was written since the allocation.
bool isFresh(const std::byte *begin, const std::byte *end) {
  return std::all_of(begin, end, [](std::byte value) {
    return value == std::byte(kFreshByte);
  });
}

bool isDamaged(const std::byte *begin, const Allocation &allocation) {
  const std::byte *first = allocation.mapping + getGuardBytes();
  const std::byte *end = first + allocation.usableBytes;
  return !isFresh(first, begin) || !isFresh(begin + allocation.bytes, end);
}

std::byte *Allocation::usable() const { return mapping + getGuardBytes(); }

/// Lets hidden memory be used, or not.
void show(Allocation &allocation, bool isShown) {
  if (!allocation.hidden)
    return;
  mprotect(allocation.usable(), allocation.usableBytes,
           isShown ? PROT_READ | PROT_WRITE : PROT_NONE);
  allocation.isShown = isShown;
}

void hideShown() {
  auto &allocations = getAllocations();
  for (const std::byte *begin : shownArrays)
    if (auto found = allocations.find(begin);
        found != allocations.end() && found->second.isShown)
      show(found->second, false);
  shownArrays.clear();
}

/// Address space for `inside` bytes between two guards, without memory; null if
/// there is none.
std::byte *mapGuarded(size_t inside) {
  void *mapping = mmap(nullptr, inside + 2 * getGuardBytes(), PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapping == MAP_FAILED ? nullptr : static_cast<std::byte *>(mapping);
}

/// The last allocation whose array begins at or before the address, or end().
auto allocationBefore(const void *address) {
  auto &allocations = getAllocations();
  auto after = allocations.upper_bound(static_cast<const std::byte *>(address));
  return after == allocations.begin() ? allocations.end() : std::prev(after);
}

size_t sumBytes(int device) {
  size_t sum = 0;
  for (const auto &[begin, allocation] : getAllocations())
    if (allocation.device == device)
      sum += allocation.bytes;
  return sum;
}
} // namespace

MemoryUse::MemoryUse(std::initializer_list<const void *> arrays) {
  {
    std::lock_guard lock(mutex);
    ++numUses;
  }
  for (const void *array : arrays)
    showMemory(array);
}

MemoryUse::~MemoryUse() {
  std::lock_guard lock(mutex);
  if (--numUses == 0)
    hideShown();
}

bool showMemory(const void *address) {
  std::lock_guard lock(mutex);
  auto &allocations = getAllocations();
  auto *byte = static_cast<const std::byte *>(address);
  // The array that begins behind the address may have it in its slack.
  auto found = allocations.upper_bound(byte);
  if (found == allocations.end() || !found->second.has(byte)) {
    if (found == allocations.begin())
      return false;
    --found;
  }
  Allocation &allocation = found->second;
  if (!allocation.hidden || !allocation.has(byte) || numUses == 0)
    return false;
  if (!allocation.isShown) {
    show(allocation, true);
    shownArrays.push_back(found->first);
  }
  return true;
}

void *allocateMemory(int device, size_t bytes, bool hidden) {
  std::lock_guard lock(mutex);
  size_t used = sumBytes(device);
  if (bytes > kDeviceMemoryBytes - used)
    return nullptr;
  size_t guard = getGuardBytes();
  size_t aligned = roundUp(std::max<size_t>(bytes, 1), kAlignment);
  size_t inside = roundUp(aligned, getPageBytes());
  std::byte *mapping = mapGuarded(inside);
  if (!mapping)
    return nullptr;
  std::byte *first = mapping + guard;
  if (mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) {
    munmap(mapping, inside + 2 * guard);
    return nullptr;
  }
  std::memset(first, kFreshByte, inside);
  std::byte *begin = first + inside - aligned;
  Allocation &allocation = getAllocations()[begin];
  allocation = {mapping, inside + 2 * guard, inside, bytes, device, hidden};
  show(allocation, false);
  return begin;
}

void *reserveAddresses(size_t bytes, bool hidden) {
  std::lock_guard lock(mutex);
  size_t guard = getGuardBytes();
  size_t inside = roundUp(bytes, getPageBytes());
  std::byte *mapping = mapGuarded(inside);
  if (!mapping)
    return nullptr;
  std::byte *begin = mapping + guard;
  getAllocations()[begin] = {mapping,
                             inside + 2 * guard,
                             0,
                             0,
                             /*device=*/-1,
                             hidden,
                             /*isReserved=*/true};
  return begin;
}

/// The reservation that has the address, and that as an offset in it.
static Allocation *findReservation(void *place, size_t &offset) {
  auto found = allocationBefore(place);
  if (found == getAllocations().end())
    return nullptr;
  auto &[begin, allocation] = *found;
  offset = static_cast<size_t>(static_cast<std::byte *>(place) - begin);
  return allocation.isReserved ? &allocation : nullptr;
}

bool commitMemory(void *place, size_t bytes, int device) {
  std::lock_guard lock(mutex);
  size_t offset = 0;
  Allocation *found = findReservation(place, offset);
  if (!found || offset != found->bytes ||
      offset + bytes > found->mappedBytes - 2 * getGuardBytes() ||
      bytes > kDeviceMemoryBytes - sumBytes(device) ||
      mprotect(place, bytes, PROT_READ | PROT_WRITE) != 0)
    return false;
  std::memset(place, kFreshByte, bytes);
  found->bytes = found->usableBytes = offset + bytes;
  found->device = device;
  show(*found, found->isShown);
  return true;
}

bool uncommitMemory(void *place, size_t bytes) {
  std::lock_guard lock(mutex);
  size_t offset = 0;
  Allocation *found = findReservation(place, offset);
  if (!found || bytes == 0 || offset + bytes != found->bytes)
    return false;
  madvise(place, bytes, MADV_DONTNEED);
  mprotect(place, bytes, PROT_NONE);
  found->bytes = found->usableBytes = offset;
  return true;
}

bool freeAddresses(void *begin) {
  std::lock_guard lock(mutex);
  auto &allocations = getAllocations();
  auto found = allocations.find(static_cast<std::byte *>(begin));
  if (found == allocations.end() || !found->second.isReserved ||
      found->second.bytes > 0)
    return false;
  munmap(found->second.mapping, found->second.mappedBytes);
  allocations.erase(found);
  return true;
}

FreeResult freeMemory(void *memory) {
  std::lock_guard lock(mutex);
  auto &allocations = getAllocations();
  auto found = allocations.find(static_cast<std::byte *>(memory));
  if (found == allocations.end() || found->second.isReserved)
    return FreeResult::Unknown;
  show(found->second, true);
  bool damaged = isDamaged(found->first, found->second);
  munmap(found->second.mapping, found->second.mappedBytes);
  allocations.erase(found);
  return damaged ? FreeResult::Damaged : FreeResult::Freed;
}

void freeDevice(int device) {
  std::lock_guard lock(mutex);
  auto &allocations = getAllocations();
  for (auto it = allocations.begin(); it != allocations.end();) {
    if (it->second.device != device) {
      ++it;
      continue;
    }
    munmap(it->second.mapping, it->second.mappedBytes);
    it = allocations.erase(it);
  }
}

bool findAllocation(const void *address, void *&begin, size_t &bytes,
                    int &device) {
  std::lock_guard lock(mutex);
  auto *byte = static_cast<const std::byte *>(address);
  auto found = allocationBefore(address);
  if (found == getAllocations().end())
    return false;
  auto &[first, allocation] = *found;
  if (byte >= first + std::max<size_t>(allocation.bytes, 1))
    return false;
  begin = const_cast<std::byte *>(first);
  bytes = allocation.bytes;
  device = allocation.device;
  return true;
}

bool isAllocated(const void *address, size_t bytes) {
  void *begin;
  size_t size;
  int device;
  if (!findAllocation(address, begin, size, device))
    return false;
  auto offset = static_cast<size_t>(static_cast<const std::byte *>(address) -
                                    static_cast<std::byte *>(begin));
  return bytes <= size - offset;
}

bool isBesideAllocation(const void *address, size_t bytes) {
  std::lock_guard lock(mutex);
  auto &allocations = getAllocations();
  auto *first = static_cast<const std::byte *>(address);
  // The array is at the end of the mapping, before the guard.
  auto next = allocations.upper_bound(first);
  if (next != allocations.end() && first + bytes > next->second.mapping)
    return true;
  if (next == allocations.begin())
    return false;
  auto &[begin, allocation] = *std::prev(next);
  const std::byte *end = begin + allocation.bytes;
  return first < allocation.mapping + allocation.mappedBytes &&
         first + bytes > end;
}

size_t getAllocatedBytes(int device) {
  std::lock_guard lock(mutex);
  return sumBytes(device);
}

std::string describeAddress(const void *address) {
  char text[32];
  std::snprintf(text, sizeof(text), "address %p, ", address);
  std::string result = text;
  std::lock_guard lock(mutex);
  auto *byte = static_cast<const std::byte *>(address);
  for (const auto &[begin, allocation] : getAllocations()) {
    const std::byte *last = allocation.mapping + allocation.mappedBytes;
    if (byte < allocation.mapping || byte >= last)
      continue;
    const std::byte *end = begin + allocation.bytes;
    if (byte < begin)
      result.append(std::to_string(begin - byte)).append(" bytes before ");
    else if (byte < end)
      result.append("byte ")
          .append(std::to_string(byte - begin))
          .append(" of ");
    else
      result.append(std::to_string(byte - end))
          .append(" bytes past the end of ");
    result.append(std::to_string(allocation.bytes));
    return result.append(" bytes of device memory");
  }
  return result.append("which is in no device memory");
}

} // namespace neuroshard::emulator
