//===- DenseLayersPacking.cpp - Layout of weights for inference -----------===//

#include "DenseLayers.h"

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::dense;

PackedLayer::PackedLayer(const DenseLayer &layer)
    : in(static_cast<size_t>(layer.in)), out(static_cast<size_t>(layer.out)),
      paddedOut((out + kPadding - 1) / kPadding * kPadding),
      weight(in * paddedOut), bias(paddedOut) {
  for (size_t o = 0; o < out; ++o) {
    bias[o] = layer.bias[o];
    for (size_t i = 0; i < in; ++i)
      weight[i * paddedOut + o] = layer.weight[o * in + i];
  }
}

PackedHead::PackedHead(const std::array<DenseLayer, 2> &head)
    : sums(static_cast<size_t>(head[0].in)), hidden(head[0]),
      hiddenByOutput(hidden.paddedOut * sums),
      outputWeight(hidden.paddedOut * 2) {
  std::copy(head[0].weight.begin(), head[0].weight.end(),
            hiddenByOutput.begin());
  for (size_t o = 0; o < 2; ++o) {
    outputBias[o] = head[1].bias[o];
    for (size_t j = 0; j < hidden.out; ++j)
      outputWeight[j * 2 + o] = head[1].weight[o * hidden.out + j];
  }
}
