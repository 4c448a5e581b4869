//===- Prefetch.h - Prefetch distance of CPU kernels ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_PREFETCH_H
#define NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_PREFETCH_H

#include <cstdint>

namespace neuroshard {

/// Distance of prefetches in rows: enough work to hide a miss to memory, and
/// few enough rows that the second-level cache, to which they are prefetched,
/// keeps them.
inline constexpr int64_t kPrefetchRows = 48;

inline constexpr int64_t kCacheLineBytes = 64;

/// To the second-level cache: a prefetch to the first level would hold one of
/// its few miss buffers until memory answers, and other rows would wait.
inline constexpr unsigned kPrefetchLocality = 2;

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_KERNELS_ROWS_PREFETCH_H
