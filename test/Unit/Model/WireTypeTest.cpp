//===- WireTypeTest.cpp - Wire types as text ------------------------------===//

#include "neuroshard/Model/WireType.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

TEST(WireTypeTest, OneTypeOrTwo) {
  EXPECT_EQ(WireType(), WireType(WireFormat::F32, WireFormat::F32));
  EXPECT_EQ(toString(WireType(WireFormat::BF16)), "bf16");
  EXPECT_EQ(toString(WireType(WireFormat::F32, WireFormat::BF16)), "f32/bf16");
  EXPECT_EQ(parseWireType("f16"), WireType(WireFormat::F16));
  EXPECT_EQ(parseWireType("bf16/f32"),
            WireType(WireFormat::BF16, WireFormat::F32));
  EXPECT_EQ(parseWireType("int8/fp8"),
            WireType(WireFormat::Int8, WireFormat::Fp8));
}

TEST(WireTypeTest, EachHasOneText) {
  EXPECT_EQ(allWireTypes().size(), 25U);
  for (WireType type : allWireTypes())
    EXPECT_EQ(parseWireType(toString(type)), type);
  for (const char *text : {"", "f8", "bf16/bf16", "f32/", "/f32", "f32/f8",
                           "f32/bf16/f16", "f32 /bf16"})
    EXPECT_FALSE(parseWireType(text)) << text;
}

} // namespace
