//===- RowVectors.h - Width of the vectors of table rows --------*- C++ -*-===//

#ifndef NEUROSHARD_CONVERSION_KERNELS_ROWVECTORS_H
#define NEUROSHARD_CONVERSION_KERNELS_ROWVECTORS_H

#include <cstdint>

namespace neuroshard {

/// How a row is cut into vectors. The defaults are for the CPU.
struct RowVectors {
  /// Elements of one vector: 16 f32 are one AVX-512 register. For a warp,
  /// four per lane.
  int64_t chunk = 16;
  /// Columns held in registers at a time, a multiple of `chunk`; a longer
  /// row is processed in blocks of this many columns.
  int64_t block = 256;
  /// Rows of a sum that are read before one of them is added.
  int64_t inFlight = 1;
  /// Columns of weights and states that an update reads before it adds up
  /// gradients, so that these loads overlap; others are read after the sum.
  int64_t ahead = 0;
  /// All vectors have `chunk` columns; of the last one those behind the row
  /// are masked. Else the rest of a row is cut into narrower vectors.
  bool isMasked = false;
};

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_KERNELS_ROWVECTORS_H
