//===- ManagedMemory.h - Memory that host and GPU share ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_MANAGEDMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_MANAGEDMEMORY_H

#include "Gpu.h"
#include "neuroshard/Runtime/Backend.h"

#include <memory>

namespace neuroshard::cuda {

/// Managed memory of a driver: pages move to the side that uses them.
class ManagedMemory : public runtime::MemorySource {
public:
  /// Throws a RuntimeError if host and kernels cannot use it at once.
  ManagedMemory(std::shared_ptr<const CudaDriver> driver, int ordinal);

  std::byte *allocate(int64_t bytes) override;
  void free(std::byte *memory) noexcept override;

private:
  std::shared_ptr<const CudaDriver> driver;
  Gpu gpu;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_MANAGEDMEMORY_H
