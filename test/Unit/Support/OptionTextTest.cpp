//===- OptionTextTest.cpp - Pass options that are refused -----------------===//

#include "neuroshard/Support/OptionText.h"

#include <gtest/gtest.h>

using namespace neuroshard;

namespace {

TEST(OptionText, OptionsAreTakenOneByOne) {
  std::string_view text = " a=1  b='x y' c={d=1 e=(2 3)} f";
  EXPECT_EQ(takeOption(text), "a=1");
  EXPECT_EQ(takeOption(text), "b='x y'");
  EXPECT_EQ(takeOption(text), "c={d=1 e=(2 3)}");
  EXPECT_EQ(takeOption(text), "f");
  EXPECT_EQ(takeOption(text), "");
}

TEST(OptionText, AnOptionGivenTwiceIsRefused) {
  EXPECT_EQ(optionTextError("seed=1 algorithm=size"), "");
  EXPECT_EQ(optionTextError("seed=1 algorithm=size seed=2"),
            "option 'seed' is given twice; expected it once");
}

TEST(OptionText, OtherBasesAreRefused) {
  for (const char *bad : {"010", "-010", "0x10", "0b1", "00"})
    EXPECT_NE(optionTextError(std::string("seed=") + bad), "") << bad;
  for (const char *good : {"0", "-0", "10", "0.5", "0xCPU", "0abc", ""})
    EXPECT_EQ(optionTextError(std::string("seed=") + good), "") << good;
  EXPECT_EQ(optionTextError("seed=010"),
            "option 'seed': expected a decimal number without leading zeros, "
            "got: '010'");
}

TEST(OptionText, NumbersBeyondF64AreRefused) {
  for (const char *bad : {"1e400", "-1e400", "1e+309"})
    EXPECT_NE(optionTextError(std::string("deadline-s=") + bad), "") << bad;
  for (const char *good : {"1e30", "1e-400", "inf", "1e400x"})
    EXPECT_EQ(optionTextError(std::string("deadline-s=") + good), "") << good;
}

} // namespace
