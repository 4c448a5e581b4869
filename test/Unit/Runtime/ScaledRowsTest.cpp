//===- ScaledRowsTest.cpp - Rows of int8 and fp8 with a scale -------------===//
//
// Shows that rows are rounded as the definitions say, within the bounds of
// docs/runtime.md, and what becomes of values that have no scale.
//
//===----------------------------------------------------------------------===//

#include "NaiveFormats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

namespace neuroshard::test {
namespace {

using namespace runtime;
using testing::Each;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

/// A row stored, and read back from a column on.
std::vector<float> travelled(const std::vector<float> &row, WireFormat format,
                             int64_t column = 0) {
  auto width = static_cast<int64_t>(row.size());
  // Rows begin anywhere.
  std::vector<std::byte> bytes(static_cast<size_t>(rowBytes(format, width)) +
                               1);
  storeRow(row.data(), width, format, bytes.data() + 1);
  std::vector<float> read(static_cast<size_t>(width - column));
  loadRow(bytes.data() + 1, column, width - column, format, read.data());
  return read;
}

class ScaledRows : public testing::TestWithParam<WireFormat> {
protected:
  /// Of magnitudes from 2^-20 to 2^20, some rows of much smaller ones, too.
  std::vector<float> randomRow(std::mt19937 &random) const {
    std::uniform_real_distribution<float> value(-1, 1);
    float size = std::exp2(20 * value(random));
    std::vector<float> row(1 + random() % 70);
    for (float &each : row)
      each = size * value(random) *
             (random() % 3 ? 1.0f : std::exp2(12 * value(random) - 12));
    return row;
  }
};

INSTANTIATE_TEST_SUITE_P(All, ScaledRows,
                         testing::Values(WireFormat::Int8, WireFormat::Fp8),
                         [](const auto &info) {
                           return std::string(toString(info.param));
                         });

TEST_P(ScaledRows, AreRoundedToNearest) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> row = randomRow(random), expected = row;
    roundNaively(GetParam(), expected.data(),
                 static_cast<int64_t>(expected.size()));
    ASSERT_EQ(travelled(row, GetParam()), expected) << round;
    size_t column = random() % row.size();
    ASSERT_EQ(travelled(row, GetParam(), static_cast<int64_t>(column)),
              std::vector<float>(expected.begin() +
                                     static_cast<std::ptrdiff_t>(column),
                                 expected.end()));
  }
}

TEST_P(ScaledRows, AreWithinTheBounds) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<float> row = randomRow(random);
    std::vector<float> found = travelled(row, GetParam());
    double largest = 0;
    for (float value : row)
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
    for (size_t i = 0; i < row.size(); ++i) {
      double bound = GetParam() == WireFormat::Int8
                         ? largest / 254
                         : std::max(std::fabs(static_cast<double>(row[i])) / 16,
                                    largest / (448 * 1024));
      EXPECT_LE(std::fabs(static_cast<double>(found[i]) - row[i]),
                bound + 0x1p-21 * largest);
    }
  }
}

TEST_P(ScaledRows, TiesGoToEven) {
  bool isInt8 = GetParam() == WireFormat::Int8;
  std::vector<float> row = isInt8 ? std::vector<float>{127, 2.5f, 3.5f, -2.5f}
                                  : std::vector<float>{448, 17, 19, -17};
  std::vector<float> expected = isInt8 ? std::vector<float>{127, 2, 4, -2}
                                       : std::vector<float>{448, 16, 20, -16};
  EXPECT_EQ(travelled(row, GetParam()), expected);
}

TEST_P(ScaledRows, OfZerosStayZero) {
  EXPECT_THAT(travelled({0, -0.0f, 0}, GetParam()), Each(0));
}

TEST_P(ScaledRows, WithAValueThatIsNotFiniteArriveAsNaN) {
  for (float bad : {kNaN, -kNaN, kInfinity, -kInfinity})
    EXPECT_THAT(travelled({1, bad, 0}, GetParam()), Each(testing::IsNan()));
}

TEST_P(ScaledRows, TooSmallForAScaleBecomeZero) {
  EXPECT_THAT(travelled({0x1p-149f, -0x1p-148f}, GetParam()), Each(0));
}

TEST_P(ScaledRows, OfTheLargestAndTheSmallestFiniteValues) {
  const float largest = 0x1.fp127f, smallest = 0x1p-126f;
  EXPECT_EQ(travelled({largest, -largest}, GetParam())[1],
            -travelled({largest}, GetParam())[0]);
  EXPECT_NEAR(travelled({largest}, GetParam())[0] / largest, 1, 1e-6);
  EXPECT_NEAR(travelled({smallest}, GetParam())[0] / smallest, 1, 1e-4);
}

/// All bytes of fp8, as integers and fractions give them.
TEST(Fp8, EachByteHasItsValue) {
  std::vector<double> magnitudes = magnitudesOfFp8();
  EXPECT_EQ(magnitudes.back(), 448);
  for (size_t byte = 0; byte < magnitudes.size(); ++byte) {
    auto value = static_cast<float>(magnitudes[byte]);
    EXPECT_EQ(fromFp8(static_cast<uint8_t>(byte)), value);
    EXPECT_EQ(toFp8(value), byte);
    EXPECT_EQ(toFp8(-value), byte | 0x80);
  }
}

TEST(ScaledRowBytes, AreOneAValueAndFourARow) {
  EXPECT_EQ(rowBytes(WireFormat::Int8, 64), 68);
  EXPECT_EQ(rowBytes(WireFormat::Fp8, 10), 14);
  EXPECT_EQ(rowBytes(WireFormat::F16, 10), 20);
}

} // namespace
} // namespace neuroshard::test
