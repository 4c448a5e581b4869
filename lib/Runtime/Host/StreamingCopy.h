//===- StreamingCopy.h - Copies with non-temporal stores --------*- C++ -*-===//
//
// An ordinary store reads its cache line from memory first. For results larger
// than the caches that is a third of the memory traffic of a lookup with one id
// per bag, and the lines displace others. Non-temporal stores avoid both.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_HOST_STREAMINGCOPY_H
#define NEUROSHARD_LIB_RUNTIME_HOST_STREAMINGCOPY_H

#include <cstdint>

namespace neuroshard::runtime {

/// Results of at least this many bytes are streamed: more than the caches of
/// the cores hold, so that the next reader would not find them there.
constexpr int64_t kStreamedBytes = int64_t{8} << 20;

/// Whether rows of `width` floats, `stride` apart, from `to` on can be
/// streamed: they must begin and end at multiples of a vector.
bool canStream(const float *to, int64_t width, int64_t stride);

/// Copies `rows` contiguous rows. Visible to other threads on return.
void streamRows(const float *from, int64_t rows, int64_t width, float *to,
                int64_t stride);

/// A lookup of f32 rows in which every bag has one id.
struct SingleRows {
  const float *weights;
  int64_t weightsStride; ///< floats from row to row.
  const void *ids;
  int32_t idBytes;
};

/// Streams rows ids[begin] ... ids[end - 1] to `to`, each as the sum 0 + x,
/// which differs from x for -0 only.
void streamSingleRows(const SingleRows &rows, int64_t begin, int64_t end,
                      int64_t width, float *to, int64_t stride);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_HOST_STREAMINGCOPY_H
