//===- ShortestTextTest.cpp - Numbers as text that reads back -------------===//

#include "neuroshard/Support/ShortestText.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>

using namespace neuroshard;

namespace {

TEST(ShortestText, NumbersHaveNoDigitTooMany) {
  EXPECT_EQ(shortestText(0.1), "0.1");
  EXPECT_EQ(shortestText(1.0), "1");
  EXPECT_EQ(shortestText(1e300), "1e+300");
  EXPECT_EQ(shortestText(0.1F), "0.1");
  EXPECT_EQ(shortestText(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(shortestText(std::numeric_limits<int64_t>::min()),
            "-9223372036854775808");
}

TEST(ShortestText, TheTextReadsBack) {
  using Limits = std::numeric_limits<double>;
  for (double value : {1.0 / 3, Limits::max(), Limits::min(),
                       Limits::denorm_min(), -Limits::infinity()})
    EXPECT_EQ(std::strtod(shortestText(value).c_str(), nullptr), value);
}

} // namespace
