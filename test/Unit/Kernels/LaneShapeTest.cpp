//===- LaneShapeTest.cpp - Distribution of rows over lanes ----------------===//

#include "neuroshard/Conversion/GPU/LaneShape.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

struct Expected {
  int64_t dim;
  ElementType element;
  int64_t lanes, chunk, columns, inFlight, itemsPerBlock;
};

class LaneShapes : public testing::TestWithParam<Expected> {};

TEST_P(LaneShapes, AreTheDocumentedOnes) {
  const Expected &expected = GetParam();
  LaneShape shape = getLaneShape(expected.dim, expected.element);
  EXPECT_EQ(shape.lanes, expected.lanes);
  EXPECT_EQ(shape.rows.chunk, expected.chunk);
  EXPECT_EQ(shape.columns, expected.columns);
  EXPECT_EQ(shape.rows.inFlight, expected.inFlight);
  EXPECT_EQ(shape.itemsPerBlock(), expected.itemsPerBlock);
}

constexpr ElementType F32 = ElementType::F32, F16 = ElementType::F16,
                      BF16 = ElementType::BF16;

INSTANTIATE_TEST_SUITE_P(
    Dims, LaneShapes,
    testing::Values(
        Expected{1, F32, 1, 1, 1, 4, 256}, Expected{4, F32, 1, 4, 4, 4, 256},
        Expected{5, F32, 8, 8, 1, 4, 32}, Expected{6, F32, 4, 8, 2, 4, 64},
        Expected{16, F32, 4, 16, 4, 4, 64}, Expected{20, F32, 8, 32, 4, 4, 32},
        Expected{64, F32, 16, 64, 4, 4, 16},
        Expected{96, F32, 32, 128, 4, 4, 8},
        Expected{100, F32, 32, 128, 4, 4, 8},
        Expected{128, F32, 32, 128, 4, 4, 8},
        Expected{256, F32, 32, 128, 8, 4, 8},
        Expected{300, F32, 32, 128, 12, 2, 8},
        Expected{512, F32, 32, 128, 16, 2, 8},
        Expected{1024, F32, 32, 128, 16, 2, 8},
        Expected{64, F16, 8, 64, 8, 4, 32}, Expected{20, F16, 8, 32, 4, 4, 32},
        Expected{128, BF16, 16, 128, 8, 4, 16}));

/// Lanes have whole loads, and no smaller group of lanes could read the row at
/// once.
TEST(LaneShape, FitsEveryDim) {
  for (ElementType element : {F32, F16, BF16})
    for (int64_t dim = 1; dim <= 2048; ++dim) {
      LaneShape shape = getLaneShape(dim, element);
      ASSERT_EQ(dim % shape.perLoad, 0) << dim;
      ASSERT_LE(shape.perLoad * elementBytes(element), 16) << dim;
      ASSERT_EQ(32 % shape.lanes, 0) << dim;
      ASSERT_EQ(shape.rows.chunk, shape.lanes * shape.perLoad) << dim;
      ASSERT_EQ(shape.rows.block % shape.rows.chunk, 0) << dim;
      ASSERT_LE(shape.columns, 16) << dim;
      if (shape.lanes < 32)
        ASSERT_LT(dim, 2 * shape.rows.chunk) << dim;
    }
}

} // namespace
