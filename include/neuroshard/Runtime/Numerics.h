//===- Numerics.h - Rows of values in each format --------------*- C++ -*-===//
//
// Conversions round to nearest even and are written with selects, not
// branches, so that the compiler vectorises the loops over a row.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_NUMERICS_H
#define NEUROSHARD_RUNTIME_NUMERICS_H

#include "neuroshard/Artifact/Manifest.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
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

/// Of values without scales.
constexpr ElementType storedType(WireFormat format) {
  return format == WireFormat::F16    ? ElementType::F16
         : format == WireFormat::BF16 ? ElementType::BF16
                                      : ElementType::F32;
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
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Fp8:
    assert(false && "quantized rows are stored by quantizeRow");
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
  case ElementType::Int8:
  case ElementType::Int4:
  case ElementType::Fp8:
    assert(false && "kernels read quantized rows");
  }
}

/// The largest value that a byte of a row with a scale stands for.
constexpr float largestOf(WireFormat format) {
  return format == WireFormat::Int8 ? 127.0f : 448.0f;
}

/// The scale of a row: its largest magnitude over that of a byte. NaN for a row
/// with an infinity or a NaN, all of which then arrives as NaN.
inline float scaleOf(const float *values, int64_t count, WireFormat format) {
  uint32_t largest = 0; // magnitudes have the order of their bits
  for (int64_t i = 0; i < count; ++i)
    largest =
        std::max(largest, std::bit_cast<uint32_t>(values[i]) & 0x7fffffffu);
  return largest >= 0x7f800000u
             ? std::bit_cast<float>(0x7fc00000u)
             : std::bit_cast<float>(largest) / largestOf(format);
}

/// A quotient of up to about 127 to the nearest integer, a tie to even.
inline uint8_t toInt8(float quotient) {
  float bounded = std::min(std::max(quotient, -127.0f), 127.0f);
  // In [2^23, 2^24) the last place of f32 is 1, so that the addition rounds.
  return static_cast<uint8_t>(std::bit_cast<uint32_t>(bounded + 0x1.8p23f));
}

inline float fromInt8(uint8_t byte) {
  return static_cast<float>(static_cast<int8_t>(byte));
}

/// A quotient of up to about 448 to the nearest e4m3, a tie to even.
inline uint8_t toFp8(float quotient) {
  uint32_t bits = std::bit_cast<uint32_t>(quotient);
  uint32_t sign = (bits >> 24) & 0x80u;
  uint32_t magnitude = bits & 0x7fffffffu;
  // In [2^14, 2^15) the last place of f32 is that of a subnormal e4m3, 2^-9.
  uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0x1p14f) -
      0x46800000u;
  uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  uint32_t normal = (rounded >> 20) - (120u << 3);
  uint32_t result = magnitude < 0x3c800000u ? subnormal : normal;
  return static_cast<uint8_t>(sign | std::min(result, 0x7eu));
}

inline float fromFp8(uint8_t byte) {
  uint32_t sign = static_cast<uint32_t>(byte & 0x80u) << 24;
  uint32_t magnitude = byte & 0x7fu;
  float subnormal =
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-9f;
  uint32_t normal = (magnitude << 20) + (120u << 23);
  uint32_t bits = magnitude < 8 ? std::bit_cast<uint32_t>(subnormal) : normal;
  return std::bit_cast<float>(sign | bits);
}

/// Rounds a row of `count` f32 values once, with its scale in front if the
/// format has one.
inline void storeRow(const float *values, int64_t count, WireFormat format,
                     std::byte *out) {
  if (!isScaled(format))
    return storeElements(values, count, storedType(format), out);
  float scale = scaleOf(values, count, format);
  std::memcpy(out, &scale, sizeof(scale));
  auto *bytes = reinterpret_cast<uint8_t *>(out + sizeof(scale));
  // Rows of zeros, and of magnitudes too small for a scale, are of zeros.
  if (!(scale > 0))
    std::memset(bytes, 0, static_cast<size_t>(count));
  else if (format == WireFormat::Int8)
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = toInt8(values[i] / scale);
  else
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = toFp8(values[i] / scale);
}

/// Converts `count` values of a row from `column` on to f32; with a scale they
/// are multiplied by it.
inline void loadRow(const std::byte *row, int64_t column, int64_t count,
                    WireFormat format, float *values) {
  if (!isScaled(format))
    return loadElements(row + column * valueBytes(format), count,
                        storedType(format), values);
  float scale;
  std::memcpy(&scale, row, sizeof(scale));
  const auto *bytes =
      reinterpret_cast<const uint8_t *>(row + sizeof(scale)) + column;
  if (format == WireFormat::Int8)
    for (int64_t i = 0; i < count; ++i)
      values[i] = fromInt8(bytes[i]) * scale;
  else
    for (int64_t i = 0; i < count; ++i)
      values[i] = fromFp8(bytes[i]) * scale;
}

/// Rounds a row of values in [low, high] to a quantized type (Model/Types.h),
/// with the scale and bias of that range. Values outside get its ends.
inline void quantizeRow(const float *values, int64_t count, ElementType type,
                        float low, float high, std::byte *out) {
  auto *bytes = reinterpret_cast<uint8_t *>(out);
  if (type == ElementType::Fp8) {
    for (int64_t i = 0; i < count; ++i)
      bytes[i] = toFp8(values[i]);
    return;
  }
  const float largest = type == ElementType::Int8 ? 255.0f : 15.0f;
  uint16_t bias = toF16(low), scale = toF16((high - fromF16(bias)) / largest);
  if (fromF16(scale) == 0)
    scale = toF16(1.0f);
  std::memcpy(out, &scale, sizeof(scale));
  std::memcpy(out + sizeof(scale), &bias, sizeof(bias));
  uint8_t *elements = bytes + sizeof(scale) + sizeof(bias);
  if (type == ElementType::Int4)
    std::memset(elements, 0, static_cast<size_t>((count + 1) / 2));
  for (int64_t i = 0; i < count; ++i) {
    float steps = (values[i] - fromF16(bias)) / fromF16(scale);
    auto element = static_cast<uint8_t>(
        std::min(std::max(std::nearbyint(steps), 0.0f), largest));
    if (type == ElementType::Int8)
      elements[i] = element;
    else
      elements[i / 2] |= static_cast<uint8_t>(element << (i % 2 * 4));
  }
}

/// The values of a quantized row of `count` columns.
inline void dequantizeRow(const std::byte *row, int64_t count, ElementType type,
                          float *values) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(row);
  if (type == ElementType::Fp8) {
    for (int64_t i = 0; i < count; ++i)
      values[i] = (bytes[i] & 0x7f) == 0x7f
                      ? std::copysign(480.0f, fromFp8(bytes[i]))
                      : fromFp8(bytes[i]);
    return;
  }
  uint16_t scale, bias;
  std::memcpy(&scale, row, sizeof(scale));
  std::memcpy(&bias, row + sizeof(scale), sizeof(bias));
  const uint8_t *elements = bytes + sizeof(scale) + sizeof(bias);
  for (int64_t i = 0; i < count; ++i) {
    int element = type == ElementType::Int8
                      ? elements[i]
                      : elements[i / 2] >> (i % 2 * 4) & 15;
    values[i] =
        std::fma(static_cast<float>(element), fromF16(scale), fromF16(bias));
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
