//===- Difference.cpp - Largest difference between tensors ----------------===//

#include "Difference.h"

#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

namespace neuroshard::run {

ElementType typeOfElements(const Tensor &tensor) {
  for (ElementType type :
       {ElementType::F32, ElementType::F16, ElementType::BF16})
    if (tensor.type == toString(type))
      return type;
  throw std::runtime_error("expected elements of f32, f16 or bf16, found " +
                           tensor.type);
}

namespace {

std::vector<float> valuesOf(const Tensor &tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  runtime::loadElements(tensor.bytes.data(), tensor.elements(),
                        typeOfElements(tensor), values.data());
  return values;
}

/// |a - b|; one that is not a number is as far away as can be.
double distance(double a, double b) {
  if (a == b) // also infinities
    return 0;
  double difference = std::abs(a - b);
  return std::isnan(difference) ? INFINITY : difference;
}

void addDifference(const Tensor &actual, const Tensor &expected,
                   const Tolerance &tolerance, Difference &total) {
  if (actual.shape != expected.shape || actual.type != expected.type)
    throw std::runtime_error("results differ in shape or type");
  ElementType type = typeOfElements(actual);
  std::vector<float> a = valuesOf(actual), b = valuesOf(expected);
  double largestValue = 0;
  for (float value : b)
    largestValue = std::max(largestValue, std::abs(static_cast<double>(value)));
  auto width = static_cast<size_t>(bytesOf(actual.type));
  for (size_t i = 0; i < a.size(); ++i) {
    total.differing += std::memcmp(&actual.bytes[i * width],
                                   &expected.bytes[i * width], width) != 0;
    double difference = distance(a[i], b[i]);
    total.largest = std::max(total.largest, difference);
    double limit = tolerance.limitAt(
        type, std::max(std::abs(a[i]), std::abs(b[i])), largestValue);
    if (difference <= limit)
      continue;
    ++total.beyond;
    if (difference - limit > total.worst - total.worstLimit) {
      total.worst = difference;
      total.worstLimit = limit;
    }
  }
  total.largestValue = std::max(total.largestValue, largestValue);
  total.elements += actual.elements();
}

} // namespace

Difference compare(const std::vector<Tensor> &actual,
                   const std::vector<Tensor> &expected,
                   const Tolerance &tolerance) {
  Difference total;
  for (size_t i = 0; i < actual.size(); ++i)
    addDifference(actual[i], expected.at(i), tolerance, total);
  return total;
}

} // namespace neuroshard::run
