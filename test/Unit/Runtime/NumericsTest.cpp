//===- NumericsTest.cpp - Conversions of element types --------------------===//
//
// Shows that conversions round as the hardware's types do.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Runtime/Numerics.h"

#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace neuroshard::runtime;

namespace {

TEST(Numerics, EveryF16ConvertsExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float expected = static_cast<float>(std::bit_cast<_Float16>(half));
    float value = fromF16(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(fromF16(toF16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected))
        << bits;
    ASSERT_EQ(toF16(value), half);
  }
}

TEST(Numerics, F16RoundsToNearestEven) {
  // All f32 on a grid fine enough to hit every tie between two f16, from
  // zero to infinity.
  for (uint64_t bits = 0; bits <= 0x7f800000u; bits += 0x800) {
    for (uint32_t offset : {0u, 1u, 0x7ffu}) {
      float value = std::bit_cast<float>(static_cast<uint32_t>(bits) + offset);
      if (std::isnan(value))
        continue;
      auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
      ASSERT_EQ(toF16(value), expected) << value;
      ASSERT_EQ(toF16(-value), expected | 0x8000) << value;
    }
  }
}

TEST(Numerics, QuantizedRowsAreWithinHalfAStep) {
  using neuroshard::ElementType;
  constexpr int64_t kDim = 7;
  const float row[kDim] = {-0.5f, 0.5f, 0.1f, -0.2f, 0.0f, 0.49f, 0.3f};
  for (auto [type, step] : {std::pair(ElementType::Int8, 1.0f / 255),
                            std::pair(ElementType::Int4, 1.0f / 15),
                            std::pair(ElementType::Fp8, 1.0f / 16)}) {
    std::byte bytes[kDim + 4] = {};
    quantizeRow(row, kDim, type, -0.5f, 0.5f, bytes);
    float read[kDim];
    dequantizeRow(bytes, kDim, type, read);
    for (int64_t i = 0; i < kDim; ++i)
      EXPECT_NEAR(read[i], row[i], step / 2 + 1e-3f) << toString(type) << i;
  }
}

TEST(Numerics, QuantizedRowsAreReadAsTheFormatsSay) {
  using neuroshard::ElementType;
  // Scale 0.5, bias 1; elements 0, 1, 15 and 2.
  const uint8_t int4[] = {0x00, 0x38, 0x00, 0x3c, 0x10, 0x2f};
  float read[4];
  dequantizeRow(reinterpret_cast<const std::byte *>(int4), 4, ElementType::Int4,
                read);
  EXPECT_EQ(read[0], 1.0f);
  EXPECT_EQ(read[1], 1.5f);
  EXPECT_EQ(read[2], 8.5f);
  EXPECT_EQ(read[3], 2.0f);
  // The largest of a format without NaN, its negative, 1, and the least.
  const uint8_t fp8[] = {0x7f, 0xff, 0x38, 0x01};
  dequantizeRow(reinterpret_cast<const std::byte *>(fp8), 4, ElementType::Fp8,
                read);
  EXPECT_EQ(read[0], 480.0f);
  EXPECT_EQ(read[1], -480.0f);
  EXPECT_EQ(read[2], 1.0f);
  EXPECT_EQ(read[3], 0x1p-9f);
}

TEST(Numerics, BF16RoundsToNearestEven) {
  auto at = [](uint32_t bits) { return toBF16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(at(0x3f800000), 0x3f80);
  EXPECT_EQ(at(0x3f807fff), 0x3f80); // below the tie
  EXPECT_EQ(at(0x3f808000), 0x3f80); // tie to even
  EXPECT_EQ(at(0x3f808001), 0x3f81);
  EXPECT_EQ(at(0x3f818000), 0x3f82); // tie to even, up
  EXPECT_EQ(at(0xbf818000), 0xbf82);
  EXPECT_EQ(at(0x7f7fffff), 0x7f80); // beyond the largest
  EXPECT_EQ(at(0x7f800000), 0x7f80);
  EXPECT_EQ(at(0x00000001), 0x0000);
  EXPECT_TRUE(std::isnan(fromBF16(at(0x7f800001))));
  EXPECT_EQ(fromBF16(0x3fc0), 1.5f);
}

} // namespace
