//===- NaiveFormats.h - Rows rounded to a format, naively ------*- C++ -*-===//
//
// By the definitions of the formats, in double: of int8 the nearest integer, of
// fp8 the nearest of all values of e4m3.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_NAIVEFORMATS_H
#define NEUROSHARD_TEST_RUNTIME_NAIVEFORMATS_H

#include "neuroshard/Model/WireType.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace neuroshard::test {

/// The magnitudes of e4m3, by their bytes.
inline std::vector<double> magnitudesOfFp8() {
  std::vector<double> magnitudes;
  for (int byte = 0; byte < 0x7f; ++byte) {
    int exponent = byte >> 3, mantissa = byte & 7;
    magnitudes.push_back(exponent == 0
                             ? std::ldexp(mantissa, -9)
                             : std::ldexp(8 + mantissa, exponent - 10));
  }
  return magnitudes;
}

/// The nearest magnitude, of two the one with an even byte.
inline double nearestFp8(double value) {
  static const std::vector<double> magnitudes = magnitudesOfFp8();
  double magnitude = std::fabs(value);
  size_t best = 0;
  for (size_t byte = 1; byte < magnitudes.size(); ++byte) {
    double before = std::fabs(magnitudes[best] - magnitude);
    double here = std::fabs(magnitudes[byte] - magnitude);
    if (here < before || (here == before && byte % 2 == 0))
      best = byte;
  }
  return std::copysign(magnitudes[best], value);
}

/// Rounds a row of one shard, and back.
inline void roundNaively(WireFormat format, float *row, int64_t width) {
  if (!isScaled(format)) {
    ElementType type = runtime::storedType(format);
    std::vector<std::byte> stored(static_cast<size_t>(width) * 4);
    runtime::storeElements(row, width, type, stored.data());
    runtime::loadElements(stored.data(), width, type, row);
    return;
  }
  float largest = 0;
  bool isFinite = true;
  for (int64_t i = 0; i < width; ++i) {
    largest = std::max(largest, std::fabs(row[i]));
    isFinite &= std::isfinite(row[i]);
  }
  float scale = largest / (format == WireFormat::Int8 ? 127.0f : 448.0f);
  for (int64_t i = 0; i < width; ++i) {
    if (!isFinite) {
      row[i] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    float quotient = scale > 0 ? row[i] / scale : 0;
    double rounded =
        format == WireFormat::Int8
            ? std::clamp(std::nearbyint(static_cast<double>(quotient)), -127.0,
                         127.0)
            : nearestFp8(quotient);
    row[i] = static_cast<float>(rounded) * scale;
  }
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_NAIVEFORMATS_H
