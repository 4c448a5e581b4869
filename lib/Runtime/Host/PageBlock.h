//===- PageBlock.h - Memory on huge pages -----------------------*- C++ -*-===//
//
// Large blocks are mapped from the operating system on huge pages, so that
// random rows of a table cost fewer TLB misses.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_PAGEBLOCK_H
#define NEUROSHARD_LIB_RUNTIME_HOST_PAGEBLOCK_H

#include "neuroshard/Runtime/Backend.h"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace neuroshard::runtime {

/// Of the system's pages, and of the largest blocks that disks have.
inline constexpr int64_t kPageBytes = 4096;

/// Memory of the host, zeroed, or of a device, undefined, aligned to at least
/// 64 bytes and owned by this object.
class PageBlock {
public:
  PageBlock() = default;
  /// Throws a RuntimeError if there is not enough memory. Null `device`: of the
  /// host.
  explicit PageBlock(int64_t bytes,
                     std::shared_ptr<DeviceMemory> device = nullptr);
  /// Addresses alone if in memory of a device, until commit().
  static PageBlock reserve(int64_t bytes, std::shared_ptr<DeviceMemory> device);
  PageBlock(PageBlock &&other) noexcept;
  PageBlock &operator=(PageBlock &&other) noexcept;
  ~PageBlock();

  std::byte *data() const { return memory; }
  int64_t size() const { return bytes; }
  /// Lets the first bytes of what was reserved have memory: that of the host
  /// has it when it is used.
  void commit(int64_t size) const {
    if (isReserved)
      source->commit(memory, size);
  }
  /// Null: the host's.
  DeviceMemory *device() const { return source.get(); }

private:
  void allocate();
  void map();

  std::byte *memory = nullptr;
  int64_t bytes = 0;
  void *mapping = nullptr; ///< of a large block; else null.
  size_t mappedBytes = 0;
  std::shared_ptr<DeviceMemory> source;
  bool isReserved = false; ///< of `source`.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_PAGEBLOCK_H
