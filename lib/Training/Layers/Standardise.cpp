//===- Standardise.cpp - Mean, spread and range of features ---------------===//

#include "Standardise.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

FeatureScale neuroshard::scaleOf(std::span<const float> matrix,
                                 size_t columns) {
  std::vector<double> sum(columns), squares(columns);
  FeatureScale scale;
  scale.min.assign(columns, INFINITY);
  scale.max.assign(columns, -INFINITY);
  for (size_t i = 0; i < matrix.size(); ++i) {
    size_t c = i % columns;
    sum[c] += matrix[i];
    squares[c] += static_cast<double>(matrix[i]) * matrix[i];
    scale.min[c] = std::min(scale.min[c], matrix[i]);
    scale.max[c] = std::max(scale.max[c], matrix[i]);
  }
  double rows = static_cast<double>(matrix.size() / columns);
  for (size_t c = 0; c < columns; ++c) {
    double mean = sum[c] / rows;
    double deviation =
        std::sqrt(std::max(0.0, squares[c] / rows - mean * mean));
    bool constant = scale.min[c] == scale.max[c];
    scale.mean.push_back(static_cast<float>(mean));
    scale.std.push_back(
        constant || deviation < 1e-6 ? 1.0f : static_cast<float>(deviation));
  }
  return scale;
}

void neuroshard::standardise(std::span<float> matrix, const FeatureScale &scale,
                             float margin) {
  size_t columns = scale.mean.size();
  for (size_t i = 0; i < matrix.size(); ++i) {
    size_t c = i % columns;
    matrix[i] = standardiseFeature(scale, c, matrix[i], margin);
  }
}
