//===- TorchMemory.cpp - Device memory from torch's allocator -------------===//

#include "TorchMemory.h"

#include "neuroshard/Artifact/Error.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <utility>

namespace neuroshard::runtime {
namespace {

class TorchMemory : public DeviceMemory {
public:
  /// `driver`: for all but allocation.
  TorchMemory(std::shared_ptr<DeviceMemory> driver, c10::Device gpu)
      : driver(std::move(driver)), gpu(gpu),
        allocator(*c10::GetAllocator(gpu.type())) {}

  std::byte *allocate(int64_t bytes) override {
    c10::DeviceGuard guard(gpu);
    try {
      return static_cast<std::byte *>(
          allocator.raw_allocate(static_cast<size_t>(bytes)));
    } catch (const c10::Error &error) {
      fail(error.what_without_backtrace());
    }
  }

  /// torch gives the memory to whatever the current stream does next, so the
  /// work of other streams must have ended. This is rare: a pool keeps buffers.
  void free(std::byte *memory) noexcept override {
    try {
      c10::DeviceGuard guard(gpu);
      c10::impl::VirtualGuardImpl(gpu.type()).synchronizeDevice(gpu.index());
      allocator.raw_deallocate(memory);
    } catch (const std::exception &) {
      // The context is lost, or the process ends.
    }
  }

  // torch's allocator reserves no addresses.
  std::byte *reserve(int64_t bytes) override { return driver->reserve(bytes); }
  void commit(std::byte *reserved, int64_t bytes) override {
    driver->commit(reserved, bytes);
  }
  void release(std::byte *reserved) noexcept override {
    driver->release(reserved);
  }

  void clear(std::byte *memory, int64_t bytes) override {
    driver->clear(memory, bytes);
  }
  void read(void *to, const std::byte *from, int64_t bytes) override {
    driver->read(to, from, bytes);
  }
  void write(std::byte *to, const void *from, int64_t bytes) override {
    driver->write(to, from, bytes);
  }

private:
  std::shared_ptr<DeviceMemory> driver;
  c10::Device gpu;
  c10::Allocator &allocator;
};

class TorchBackends : public BackendFactory {
public:
  TorchBackends(std::unique_ptr<BackendFactory> backends, c10::Device gpu)
      : backends(std::move(backends)), gpu(gpu) {}

  std::shared_ptr<DeviceMemory> makeMemory(int32_t rank) override {
    return std::make_shared<TorchMemory>(backends->makeMemory(rank), gpu);
  }
  std::unique_ptr<Backend> make(int32_t rank, BackendParts parts) override {
    return backends->make(rank, std::move(parts));
  }
  std::unique_ptr<Communicator>
  connect(int32_t rank, BufferSource &buffers,
          std::unique_ptr<Communicator> group) override {
    return backends->connect(rank, buffers, std::move(group));
  }

private:
  std::unique_ptr<BackendFactory> backends;
  c10::Device gpu;
};

} // namespace

std::unique_ptr<BackendFactory>
allocateWithTorch(std::unique_ptr<BackendFactory> backends, c10::Device gpu) {
  backends->whenFull(
      [gpu] { c10::getDeviceAllocator(gpu.type())->emptyCache(); });
  return std::make_unique<TorchBackends>(std::move(backends), gpu);
}

} // namespace neuroshard::runtime
