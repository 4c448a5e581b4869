//===- StreamingCopy.h - Copies with non-temporal stores --------*- C++ -*-===//
//
// An ordinary store first reads its cache line from memory. For results that
// are larger than the caches this is a third of all traffic of a lookup of
// single ids, and the lines displace others.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_MEMORY_STREAMINGCOPY_H
#define NEUROSHARD_LIB_RUNTIME_MEMORY_STREAMINGCOPY_H

#include <cstdint>

namespace neuroshard::runtime {

/// Bytes of results from which on they are streamed: more than the caches of
/// the cores hold, so that whoever reads them next would not find them there.
constexpr int64_t streamedBytes = int64_t{8} << 20;

/// True if rows of `width` floats, `stride` apart from `to` on, can be
/// streamed: they begin and end where vectors do.
bool canStream(const float *to, int64_t width, int64_t stride);

/// Copies `rows` contiguous rows. Visible to other threads on return.
void streamRows(const float *from, int64_t rows, int64_t width, float *to,
                int64_t stride);

/// Lookups of f32 rows by bags of one id each.
struct SingleRows {
  const float *weights;
  int64_t weightsStride; ///< floats from row to row.
  const void *ids;
  int32_t idBytes;
};

/// Streams rows ids[begin] ... ids[end - 1] to `to`, the sums of bags of one
/// id: 0 + x, which is x but for -0.
void streamSingleRows(const SingleRows &rows, int64_t begin, int64_t end,
                      int64_t width, float *to, int64_t stride);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_MEMORY_STREAMINGCOPY_H
