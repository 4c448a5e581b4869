//===- DenseLayersPacking.cpp - Weights in the order of the loops ---------===//

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

PackedHead::PackedHead(const NeuralComputeMember &member)
    : sums(static_cast<size_t>(member.head[0].in)), hidden(member.head[0]),
      hiddenByOutput(hidden.paddedOut * sums),
      outputWeight(hidden.paddedOut * 2) {
  std::copy(member.head[0].weight.begin(), member.head[0].weight.end(),
            hiddenByOutput.begin());
  for (size_t o = 0; o < 2; ++o) {
    outputBias[o] = member.head[1].bias[o];
    for (size_t j = 0; j < hidden.out; ++j)
      outputWeight[j * 2 + o] = member.head[1].weight[o * hidden.out + j];
  }
}
