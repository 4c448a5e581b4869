//===- ReservedMemory.h - Addresses of a GPU whose memory grows -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_RESERVEDMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_RESERVEDMEMORY_H

#include "Gpu.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard::cuda {

/// A range of addresses, of which the first ones have memory. The context must
/// be current to make it and to commit.
class ReservedMemory {
public:
  ReservedMemory(const Gpu &gpu, int64_t bytes);
  ReservedMemory(ReservedMemory &&other) noexcept;
  ReservedMemory &operator=(ReservedMemory &&) = delete;
  ~ReservedMemory();

  std::byte *data() const { return reinterpret_cast<std::byte *>(first); }
  /// Lets at least so many bytes have memory, whose values are undefined where
  /// it is new. Throws NSC_OUT_OF_MEMORY if there is not enough.
  void commit(int64_t bytes);

private:
  struct Piece {
    CUmemHandle memory;
    size_t bytes;
  };

  size_t rounded(int64_t bytes) const;

  const Gpu &gpu;
  CUdeviceptr first = 0;
  size_t reserved = 0;
  size_t granularity = 0;
  size_t committed = 0;
  std::vector<Piece> pieces; ///< side by side from `first` on.
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_RESERVEDMEMORY_H
