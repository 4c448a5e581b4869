//===- WireTypeTest.cpp - Wire types as text ------------------------------===//

#include "neuroshard/Model/WireType.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

TEST(WireTypeTest, OneTypeOrTwo) {
  EXPECT_EQ(WireType(), WireType(ElementType::F32, ElementType::F32));
  EXPECT_EQ(toString(WireType(ElementType::BF16)), "bf16");
  EXPECT_EQ(toString(WireType(ElementType::F32, ElementType::BF16)),
            "f32/bf16");
  EXPECT_EQ(parseWireType("f16"), WireType(ElementType::F16));
  EXPECT_EQ(parseWireType("bf16/f32"),
            WireType(ElementType::BF16, ElementType::F32));
}

TEST(WireTypeTest, EachHasOneText) {
  EXPECT_EQ(allWireTypes().size(), 9U);
  for (WireType type : allWireTypes())
    EXPECT_EQ(parseWireType(toString(type)), type);
  for (const char *text : {"", "f8", "bf16/bf16", "f32/", "/f32", "f32/f8",
                           "f32/bf16/f16", "f32 /bf16"})
    EXPECT_FALSE(parseWireType(text)) << text;
}

} // namespace
