//===- TensorMemory.cpp - Memory of the tensors of host functions ---------===//
//
// Tensors may lie where the host cannot write, so a list has their owners.
//
//===----------------------------------------------------------------------===//

#include "Device/Device.h"
#include "Export.h"
#include "Host/TensorPool.h"
#include "neuroshard/Runtime/DriverABI.h"
#include "neuroshard/Runtime/HostProgramABI.h"
#include "neuroshard/Runtime/KernelABI.h"

#include <exception>
#include <limits>
#include <mutex>
#include <unordered_map>
#include <utility>

using namespace neuroshard::runtime;

namespace {

constexpr uint64_t kMaxBytes = std::numeric_limits<int64_t>::max() / 4;

/// The memory of all tensors by its address.
class TensorOwners {
public:
  void *add(Buffer memory) {
    void *tensor = memory.get();
    std::lock_guard lock(mutex);
    owners.emplace(tensor, std::move(memory));
    return tensor;
  }

  /// Null for what is no tensor.
  Buffer take(void *tensor) {
    std::lock_guard lock(mutex);
    auto found = owners.find(tensor);
    if (found == owners.end())
      return nullptr;
    Buffer memory = std::move(found->second);
    owners.erase(found);
    return memory;
  }

private:
  std::mutex mutex;
  std::unordered_map<void *, Buffer> owners;
};

/// Never destroyed: tensors may be freed after static objects are.
TensorOwners &tensors() {
  static auto *all = new TensorOwners;
  return *all;
}

void *allocateFrom(BufferPool &pool, uint64_t bytes) noexcept {
  if (bytes > kMaxBytes)
    return nullptr;
  try {
    return tensors().add(pool.take(static_cast<int64_t>(bytes)));
  } catch (const std::exception &) {
    return nullptr;
  }
}

} // namespace

NSRT_EXPORT void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment,
                                                     uint64_t bytes) {
  if (alignment > NSRT_TENSOR_ALIGNMENT)
    return nullptr;
  bool isTensor = alignment == NSRT_TENSOR_ALIGNMENT;
  return allocateFrom(isTensor ? tensorPool() : processPool(), bytes);
}

NSRT_EXPORT void _mlir_memref_to_llvm_free(void *tensor) {
  if (tensor)
    tensors().take(tensor);
}

NSRT_EXPORT void *nsrt_tensor_allocate(nsrt_device *device, int64_t bytes) {
  return bytes < 0
             ? nullptr
             : allocateFrom(*device->buffers, static_cast<uint64_t>(bytes));
}

NSRT_EXPORT void nsrt_tensor_free(void *tensor) {
  _mlir_memref_to_llvm_free(tensor);
}
