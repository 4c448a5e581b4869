//===- CacheBuffers.h - Sizes of what row caches use ------------*- C++ -*-===//
//
// The runtime takes memory for row caches (Model/RowCache.h) in these sizes,
// and the planner counts them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_MODEL_CACHEBUFFERS_H
#define NEUROSHARD_MODEL_CACHEBUFFERS_H

#include <cstdint>

namespace neuroshard {

/// Bytes in which a GPU takes memory for the arrays of a cache, which grow at
/// addresses of their own: the allocation granularity of NVIDIA's GPUs.
inline constexpr int64_t kGpuPageBytes = int64_t{2} << 20;

/// Rows pass through so many bytes on their way to and from the caches of a
/// GPU, on the GPU and in pinned memory of the host; a larger row through its
/// own size.
inline constexpr int64_t kRowStagingBytes = int64_t{4} << 20;

/// Blocks of files pass through so many bytes of host memory, of each device.
inline constexpr int64_t kFileStagingBytes = int64_t{16} << 20;

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_CACHEBUFFERS_H
