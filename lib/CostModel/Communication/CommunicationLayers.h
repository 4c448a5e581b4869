//===- CommunicationLayers.h - Dense layers on blocks of rows ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_COMMUNICATION_COMMUNICATIONLAYERS_H
#define NEUROSHARD_LIB_COSTMODEL_COMMUNICATION_COMMUNICATIONLAYERS_H

#include <cstddef>
#include <vector>

namespace neuroshard::dense {

/// Rows of floats, one after another.
struct Rows {
  /// The rows' values afterwards are unspecified.
  void resize(size_t newCount, size_t newWidth) {
    count = newCount;
    width = newWidth;
    values.resize(count * width);
  }

  float *row(size_t r) { return values.data() + r * width; }
  const float *row(size_t r) const { return values.data() + r * width; }

  size_t count = 0, width = 0;
  std::vector<float> values;
};

/// The weights of some inputs of a layer, [in][out], `out` a multiple of 16.
struct LayerView {
  const float *weight;
  const float *bias;
  size_t in, out;
};

/// y = weight x + bias for the first `rows` rows, with negative results set to
/// 0 if `rectify`. Reads the first `in` numbers of a row of x and writes `out`
/// of one of y. Each row gets the same bits whatever the others are: products
/// are added in the order of the inputs, and never fused with the addition.
void applyLayer(const LayerView &layer, const Rows &x, size_t rows,
                bool rectify, Rows &y);

} // namespace neuroshard::dense

#endif // NEUROSHARD_LIB_COSTMODEL_COMMUNICATION_COMMUNICATIONLAYERS_H
