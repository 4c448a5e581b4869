//===- DenseLayers.h - Inference of dense layers, vectorised ----*- C++ -*-===//
///
/// \file
/// Each loop is compiled for several instruction sets and chosen at run time.
/// No variant fuses a multiplication with an addition, and all add in the same
/// order, so that a model gives the same bits on every machine, for every size
/// of a batch.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COSTMODEL_LAYERS_DENSELAYERS_H
#define NEUROSHARD_LIB_COSTMODEL_LAYERS_DENSELAYERS_H

#include "neuroshard/CostModel/DenseLayer.h"
#include "neuroshard/Support/InstructionSets.h"

#include <array>
#include <cstddef>
#include <vector>

namespace neuroshard::dense {

/// Rows that headRows() takes at most.
inline constexpr size_t kBlockRows = 32;

/// Outputs are padded to a multiple of the widest vector.
inline constexpr size_t kPadding = 16;

/// Weights as the loop over outputs wants them: [in][out], outputs padded with
/// zeros to whole vectors.
struct PackedLayer {
  explicit PackedLayer(const DenseLayer &layer);

  size_t in, out, paddedOut;
  std::vector<float> weight, bias;
};

/// y = weight x + bias, `paddedOut` numbers.
void affine(InstructionSet instructions, const PackedLayer &layer,
            const float *x, float *y);

/// The head of a compute network: K sums -> hidden -> 2.
struct PackedHead {
  explicit PackedHead(const std::array<DenseLayer, 2> &head);

  size_t sums;
  /// Layer 0 also as [out][in], which a block of rows reads.
  PackedLayer hidden;
  std::vector<float> hiddenByOutput;
  std::vector<float> outputWeight;
  float outputBias[2];
};

/// Log forward and log backward of `rows` devices: out[r] and
/// out[kBlockRows + r]. Row r's sums begin at sums[r * stride].
void headRows(InstructionSet instructions, const PackedHead &head,
              const double *sums, size_t stride, size_t rows, float *out);

/// exp() of `count` numbers, at most 2 * kBlockRows; each is first kept within
/// +-60.
void exponentials(InstructionSet instructions, const float *x, size_t count,
                  float *y);

} // namespace neuroshard::dense

#endif // NEUROSHARD_LIB_COSTMODEL_LAYERS_DENSELAYERS_H
