//===- Dense.cpp - Weights of dense layers as plain numbers ---------------===//

#include "Dense.h"
#include "neuroshard/Support/Random.h"

#include <cmath>

using namespace neuroshard;

DenseStack neuroshard::randomStack(const std::vector<int64_t> &widths,
                                   uint64_t seed) {
  MersenneTwister random(seed);
  DenseStack stack;
  for (size_t i = 0; i + 1 < widths.size(); ++i) {
    DenseLayer layer{widths[i], widths[i + 1], {}, {}};
    double limit = std::sqrt(6.0 / static_cast<double>(layer.in));
    layer.weight.resize(static_cast<size_t>(layer.in * layer.out));
    for (float &weight : layer.weight)
      weight = static_cast<float>(limit * (2 * random.uniform() - 1));
    layer.bias.assign(static_cast<size_t>(layer.out), 0.0f);
    stack.push_back(std::move(layer));
  }
  return stack;
}
