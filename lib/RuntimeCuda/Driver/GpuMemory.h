//===- GpuMemory.h - Memory of a GPU, and pinned host memory ----*- C++ -*-===//
//
// Allocations throw with the bytes asked for and those that are free.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPUMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPUMEMORY_H

#include "Gpu.h"

#include <cstddef>
#include <string>
#include <utility>

namespace neuroshard::cuda {

/// Device memory, aligned to at least 256 bytes.
class DeviceBlock {
public:
  DeviceBlock() = default;
  /// Zero bytes: no memory, a null pointer. Throws NSC_OUT_OF_MEMORY with
  /// `purpose`, the bytes asked for and those that are free.
  DeviceBlock(const Gpu &gpu, int64_t bytes, const std::string &purpose);
  DeviceBlock(DeviceBlock &&other) noexcept { swap(other); }
  DeviceBlock &operator=(DeviceBlock &&other) noexcept {
    DeviceBlock(std::move(other)).swap(*this);
    return *this;
  }
  ~DeviceBlock();

  CUdeviceptr address() const { return pointer; }
  int64_t size() const { return bytes; }
  template <typename T> T *as(int64_t offset = 0) const {
    return pointer ? reinterpret_cast<T *>(pointer +
                                           static_cast<CUdeviceptr>(offset))
                   : nullptr;
  }

private:
  void swap(DeviceBlock &other) noexcept;

  const Gpu *gpu = nullptr;
  CUdeviceptr pointer = 0;
  int64_t bytes = 0;
};

/// Page-locked host memory, for asynchronous copies.
class PinnedBlock {
public:
  PinnedBlock() = default;
  PinnedBlock(const Gpu &gpu, int64_t bytes);
  PinnedBlock(PinnedBlock &&other) noexcept { swap(other); }
  PinnedBlock &operator=(PinnedBlock &&other) noexcept {
    PinnedBlock(std::move(other)).swap(*this);
    return *this;
  }
  ~PinnedBlock();

  std::byte *data() const { return static_cast<std::byte *>(pointer); }
  int64_t size() const { return bytes; }

private:
  void swap(PinnedBlock &other) noexcept;

  const Gpu *gpu = nullptr;
  void *pointer = nullptr;
  int64_t bytes = 0;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_GPUMEMORY_H
