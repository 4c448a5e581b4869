//===- Numerics.h - f32, f16 and bf16 rows ---------------------*- C++ -*-===//
//
// Conversions round to nearest even and are written with selects, not
// branches, so that the compiler vectorises the loops over a row.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_NUMERICS_H
#define NEUROSHARD_RUNTIME_NUMERICS_H

#include "neuroshard/Artifact/Manifest.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace neuroshard::runtime {

inline uint16_t toF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 16) & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  // Adding 0.5 puts the last place of a subnormal f16 into the last place of
  // the f32 sum, so that the addition rounds it.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      0x3f000000u;
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  uint32_t normal = (rounded >> 13) - (112u << 10);
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477ff000u ? 0x7c00u : result; // infinity
  result = magnitude > 0x7f800000u ? 0x7e00u : result;  // NaN
  return static_cast<uint16_t>(sign | result);
}

inline float fromF16(uint16_t half) {
  uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t magnitude = half & 0x7fffu;
  float subnormal =
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  uint32_t rebias = magnitude >= 0x7c00u ? (224u << 23) : (112u << 23);
  uint32_t normal = (magnitude << 13) + rebias;
  uint32_t bits =
      magnitude < 0x0400u ? std::bit_cast<uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | bits);
}

inline uint16_t toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  uint32_t nan = (bits >> 16) | 0x0040u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan
                                                                  : rounded);
}

inline float fromBF16(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

/// Rounds `count` f32 values once to the element type.
inline void storeElements(const float *values, int64_t count, ElementType type,
                          std::byte *out) {
  auto *halves = reinterpret_cast<uint16_t *>(out);
  switch (type) {
  case ElementType::F32:
    std::memcpy(out, values, static_cast<size_t>(count) * sizeof(float));
    return;
  case ElementType::F16:
    for (int64_t i = 0; i < count; ++i)
      halves[i] = toF16(values[i]);
    return;
  case ElementType::BF16:
    for (int64_t i = 0; i < count; ++i)
      halves[i] = toBF16(values[i]);
    return;
  }
}

/// Converts `count` elements to f32, exactly.
inline void loadElements(const std::byte *in, int64_t count, ElementType type,
                         float *values) {
  const auto *halves = reinterpret_cast<const uint16_t *>(in);
  switch (type) {
  case ElementType::F32:
    std::memcpy(values, in, static_cast<size_t>(count) * sizeof(float));
    return;
  case ElementType::F16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = fromF16(halves[i]);
    return;
  case ElementType::BF16:
    for (int64_t i = 0; i < count; ++i)
      values[i] = fromBF16(halves[i]);
    return;
  }
}

/// Divides the sum of a bag by its count; leaves the sum of an empty bag.
inline void divideRow(float *row, int64_t dim, float count) {
  if (count == 0)
    return;
  for (int64_t c = 0; c < dim; ++c)
    row[c] /= count;
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_NUMERICS_H
