//===- ElementTypeTest.cpp - Types of tables and bytes of rows ------------===//

#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/Types.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

TEST(ElementTypeTest, TablesInBytesAreServedAndNotTrained) {
  for (const char *text : {"int8", "int4", "fp8"}) {
    std::optional<ElementType> type = parseElementType(text);
    ASSERT_TRUE(type) << text;
    EXPECT_TRUE(isQuantized(*type)) << text;
    EXPECT_EQ(valueType(*type), ElementType::F32) << text;
  }
  for (ElementType type : kFloatTypes)
    EXPECT_FALSE(isQuantized(type));
  EXPECT_FALSE(parseElementType("f8E4M3FN"));
}

TEST(ElementTypeTest, BytesOfARow) {
  EXPECT_EQ(rowBytes(7, ElementType::F32), 28);
  EXPECT_EQ(rowBytes(7, ElementType::F16), 14);
  EXPECT_EQ(rowBytes(7, ElementType::Int8), 11);
  EXPECT_EQ(rowBytes(7, ElementType::Int4), 8);
  EXPECT_EQ(rowBytes(7, ElementType::Fp8), 7);
  EXPECT_EQ(paddedRowBytes(64, ElementType::Int8), 80);
}

} // namespace
