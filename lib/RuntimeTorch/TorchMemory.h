//===- TorchMemory.h - Device memory from torch's allocator -----*- C++ -*-===//
//
// torch keeps the memory of freed tensors. Shards and buffers that come from
// its allocator too can use that, and show in torch.cuda.memory_allocated.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_TORCHMEMORY_H
#define NEUROSHARD_LIB_RUNTIMETORCH_TORCHMEMORY_H

#include "neuroshard/Runtime/Backend.h"

#include <c10/core/Device.h>

#include <memory>

namespace neuroshard::runtime {

/// `backends`, but torch allocates the memory of all its devices on `gpu`.
std::unique_ptr<BackendFactory>
allocateWithTorch(std::unique_ptr<BackendFactory> backends, c10::Device gpu);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_TORCHMEMORY_H
