//===- CheckLayer.cpp - Checks of a layer read from a file ----------------===//

#include "CheckLayer.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

bool neuroshard::allFinite(const std::vector<float> &values) {
  return std::all_of(values.begin(), values.end(),
                     [](float value) { return std::isfinite(value); });
}

std::string neuroshard::faultOf(const DenseLayer &layer, int64_t in) {
  if (layer.in != in || layer.out < 1 || layer.out > kMaxLayerWidth)
    return "expected " + std::to_string(in) + " inputs and 1 to " +
           std::to_string(kMaxLayerWidth) + " outputs, got " +
           std::to_string(layer.in) + " and " + std::to_string(layer.out);
  if (layer.weight.size() != static_cast<size_t>(layer.in * layer.out) ||
      layer.bias.size() != static_cast<size_t>(layer.out))
    return "its weights or biases are not as many as its inputs and outputs "
           "say";
  if (!allFinite(layer.weight) || !allFinite(layer.bias))
    return "expected finite weights and biases";
  return {};
}
