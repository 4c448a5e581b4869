//===- PlainMemory.h - Memory of a GPU for a device -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_PLAINMEMORY_H
#define NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_PLAINMEMORY_H

#include "Gpu.h"
#include "ReservedMemory.h"
#include "neuroshard/Runtime/Backend.h"

#include <map>
#include <memory>
#include <mutex>

namespace neuroshard::cuda {

/// Memory that the driver allocates.
class PlainMemory : public runtime::DeviceMemory {
public:
  explicit PlainMemory(std::shared_ptr<const Gpu> gpu)
      : holder(std::move(gpu)), gpu(*holder), driver(holder->driver) {}

  std::byte *allocate(int64_t bytes) override;
  void free(std::byte *memory) noexcept override;
  std::byte *reserve(int64_t bytes) override;
  void commit(std::byte *reserved, int64_t bytes) override;
  void release(std::byte *reserved) noexcept override;
  void clear(std::byte *memory, int64_t bytes) override;
  void read(void *to, const std::byte *from, int64_t bytes) override;
  void write(std::byte *to, const void *from, int64_t bytes) override;

private:
  std::shared_ptr<const Gpu> holder;
  const Gpu &gpu;
  const CudaDriver &driver;
  std::mutex mutex;
  std::map<const std::byte *, ReservedMemory> reservations;
};

} // namespace neuroshard::cuda

#endif // NEUROSHARD_LIB_RUNTIMECUDA_DRIVER_PLAINMEMORY_H
