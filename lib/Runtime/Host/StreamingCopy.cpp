//===- StreamingCopy.cpp - Copies with non-temporal stores ----------------===//
//
// One loop per width of vectors, chosen by what the processor has. Processors
// other than x86-64 copy nothing here: canStream is false.
//
//===----------------------------------------------------------------------===//

#include "StreamingCopy.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace neuroshard::runtime {

#ifdef __x86_64__

namespace {

constexpr int64_t kVectorFloats = 8;

[[gnu::target("avx")]] void streamWide(const float *from, int64_t count,
                                       float *to) {
  for (int64_t i = 0; i < count; i += kVectorFloats)
    _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
}

void streamNarrow(const float *from, int64_t count, float *to) {
  for (int64_t i = 0; i < count; i += 4)
    _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

/// Rows to prefetch ahead, into the second-level cache, as the kernels do.
constexpr int64_t kRowsAhead = 48;

[[gnu::always_inline]] inline void prefetchRow(const float *row,
                                               int64_t width) {
  for (int64_t c = 0; c < width; c += 16)
    __builtin_prefetch(row + c, /*write=*/0, /*locality=*/2);
}

template <typename Id>
[[gnu::always_inline]] inline const float *rowOf(const SingleRows &rows,
                                                 int64_t i) {
  int64_t id = static_cast<const Id *>(rows.ids)[i];
  return rows.weights + id * rows.weightsStride;
}

// Writes rows of `width` floats plus 0. Prefetches this range's rows only: the
// next ones may be another core's. A macro and no template over the vector
// types: a function for one target cannot be inlined into one for another.
#define STREAM_ROWS(name, floats, target, stream, add, zero, load)             \
  template <typename Id>                                                       \
  target void name(const SingleRows &rows, int64_t begin, int64_t end,         \
                   int64_t width, float *to, int64_t stride) {                 \
    int64_t ahead = begin + kRowsAhead < end ? begin + kRowsAhead : end;       \
    for (int64_t i = begin; i < ahead; ++i)                                    \
      prefetchRow(rowOf<Id>(rows, i), width);                                  \
    for (int64_t i = begin; i < end; ++i, ++ahead, to += stride) {             \
      if (ahead < end)                                                         \
        prefetchRow(rowOf<Id>(rows, ahead), width);                            \
      const float *from = rowOf<Id>(rows, i);                                  \
      for (int64_t c = 0; c < width; c += (floats))                            \
        stream(to + c, add(zero(), load(from + c)));                           \
    }                                                                          \
    _mm_sfence();                                                              \
  }
STREAM_ROWS(streamLines, 16, [[gnu::target("avx512f")]], _mm512_stream_ps,
            _mm512_add_ps, _mm512_setzero_ps, _mm512_loadu_ps)
STREAM_ROWS(streamHalves, 8, [[gnu::target("avx")]], _mm256_stream_ps,
            _mm256_add_ps, _mm256_setzero_ps, _mm256_loadu_ps)
STREAM_ROWS(streamQuarters, 4, , _mm_stream_ps, _mm_add_ps, _mm_setzero_ps,
            _mm_loadu_ps)
#undef STREAM_ROWS

using StreamRows = void(const SingleRows &, int64_t, int64_t, int64_t, float *,
                        int64_t);

bool hasWideVectors() {
  static const bool has = __builtin_cpu_supports("avx");
  return has;
}

bool hasLineVectors() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

/// Whether rows are whole cache lines: a partly written line keeps one of the
/// core's write buffers busy.
bool isOfLines(const float *to, int64_t width, int64_t stride) {
  return reinterpret_cast<uintptr_t>(to) % 64 == 0 && width % 16 == 0 &&
         stride % 16 == 0;
}

template <typename Id>
StreamRows *loopFor(const float *to, int64_t width, int64_t stride) {
  if (hasLineVectors() && isOfLines(to, width, stride))
    return streamLines<Id>;
  return hasWideVectors() ? streamHalves<Id> : streamQuarters<Id>;
}

} // namespace

bool canStream(const float *to, int64_t width, int64_t stride) {
  return reinterpret_cast<uintptr_t>(to) % (kVectorFloats * sizeof(float)) ==
             0 &&
         width % kVectorFloats == 0 && stride % kVectorFloats == 0;
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
  StreamRows *loop = rows.idBytes == 4 ? loopFor<int32_t>(to, width, stride)
                                       : loopFor<int64_t>(to, width, stride);
  loop(rows, begin, end, width, to, stride);
}

#else // canStream is false

bool canStream(const float *, int64_t, int64_t) { return false; }

void streamRows(const float *, int64_t, int64_t, float *, int64_t) {}

void streamSingleRows(const SingleRows &, int64_t, int64_t, int64_t, float *,
                      int64_t) {}

#endif

} // namespace neuroshard::runtime
