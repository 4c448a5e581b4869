//===- Streaming.cpp - Stores that pass the caches by ---------------------===//

#include "Streaming.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace neuroshard::runtime {

#ifdef __x86_64__

namespace {

constexpr int64_t vectorFloats = 8;

[[gnu::target("avx")]] void streamWide(const float *from, int64_t count,
                                       float *to) {
  for (int64_t i = 0; i < count; i += vectorFloats)
    _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
}

void streamNarrow(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i += 4)
    _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

/// Rows fetched ahead, into the second-level cache, as kernels do it.
constexpr int64_t rowsAhead = 48;

[[gnu::target("avx")]] void addZeroWide(const float *from, int64_t count,
                                        float *to) {
  for (int64_t i = 0; i < count; i += vectorFloats)
    _mm256_stream_ps(
        to + i, _mm256_add_ps(_mm256_setzero_ps(), _mm256_loadu_ps(from + i)));
}

void addZeroNarrow(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i += 4)
    _mm_stream_ps(to + i, _mm_add_ps(_mm_setzero_ps(), _mm_loadu_ps(from + i)));
}

bool hasWideVectors() {
  static const bool has = __builtin_cpu_supports("avx");
  return has;
}

template <typename Id>
void streamRowsOf(const SingleRows &rows, int64_t begin, int64_t end,
                  int64_t width, float *to, int64_t stride) {
  const auto *ids = static_cast<const Id *>(rows.ids);
  auto *stream = hasWideVectors() ? addZeroWide : addZeroNarrow;
  for (int64_t i = begin; i < end; ++i, to += stride) {
    if (i + rowsAhead < rows.numIds)
      for (int64_t c = 0; c < width; c += 16)
        __builtin_prefetch(rows.weights +
                               ids[i + rowsAhead] * rows.weightsStride + c,
                           /*write=*/0, /*locality=*/2);
    stream(rows.weights + ids[i] * rows.weightsStride, width, to);
  }
  _mm_sfence();
}

} // namespace

bool canStream(const float *to, int64_t width, int64_t stride) {
  return reinterpret_cast<uintptr_t>(to) % (vectorFloats * sizeof(float)) ==
             0 &&
         width % vectorFloats == 0 && stride % vectorFloats == 0;
}

void streamRows(const float *from, int64_t rows, int64_t width, float *to,
                int64_t stride) {
  auto *stream = hasWideVectors() ? streamWide : streamNarrow;
  if (stride == width) {
    stream(from, rows * width, to);
  } else {
    for (int64_t row = 0; row < rows; ++row)
      stream(from + row * width, width, to + row * stride);
  }
  _mm_sfence();
}

void streamSingleRows(const SingleRows &rows, int64_t begin, int64_t end,
                      int64_t width, float *to, int64_t stride) {
  if (rows.idBytes == 4)
    streamRowsOf<int32_t>(rows, begin, end, width, to, stride);
  else
    streamRowsOf<int64_t>(rows, begin, end, width, to, stride);
}

#else // nothing is streamed: see canStream

bool canStream(const float *, int64_t, int64_t) { return false; }

void streamRows(const float *, int64_t, int64_t, float *, int64_t) {}

void streamSingleRows(const SingleRows &, int64_t, int64_t, int64_t, float *,
                      int64_t) {}

#endif

} // namespace neuroshard::runtime
