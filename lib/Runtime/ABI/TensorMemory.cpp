//===- TensorMemory.cpp - Memory of the tensors of host functions ---------===//
//
// A header before the tensor owns its memory.
//
//===----------------------------------------------------------------------===//

#include "Export.h"
#include "Host/TensorPool.h"
#include "neuroshard/Runtime/DriverABI.h"
#include "neuroshard/Runtime/HostProgramABI.h"

#include <exception>
#include <limits>
#include <memory>
#include <new>
#include <utility>

using namespace neuroshard::runtime;

namespace {

/// As many bytes as the strictest alignment of a tensor.
struct alignas(64) Header {
  Buffer memory;
};

constexpr uint64_t kMaxBytes = std::numeric_limits<int64_t>::max() / 4;

} // namespace

NSRT_EXPORT void *_mlir_memref_to_llvm_aligned_alloc(uint64_t alignment,
                                                     uint64_t bytes) {
  if (alignment > sizeof(Header) || bytes > kMaxBytes)
    return nullptr;
  try {
    Buffer memory =
        tensorPool().take(static_cast<int64_t>(bytes + sizeof(Header)));
    auto *header = new (memory.get()) Header;
    header->memory = std::move(memory);
    return header + 1;
  } catch (const std::exception &) {
    return nullptr;
  }
}

NSRT_EXPORT void _mlir_memref_to_llvm_free(void *tensor) {
  if (!tensor)
    return;
  Header *header = static_cast<Header *>(tensor) - 1;
  Buffer memory = std::move(header->memory);
  header->~Header();
}

NSRT_EXPORT void nsrt_tensor_free(void *tensor) {
  _mlir_memref_to_llvm_free(tensor);
}
