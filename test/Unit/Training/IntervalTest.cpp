//===- IntervalTest.cpp - Intervals hold nine of ten ----------------------===//

#include "neuroshard/Training/Interval.h"

#include "neuroshard/Support/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

using namespace neuroshard;
using testing::ElementsAre;

namespace {

TEST(Interval, ATwentiethLiesOutsideOnEachSide) {
  std::vector<double> ratios(99);
  std::iota(ratios.rbegin(), ratios.rend(), 1.0);
  // 100 gaps between and beside 99 numbers, of which 5 lie on each side.
  EXPECT_EQ(intervalOf(ratios), (PredictionInterval{5, 95}));
  ratios.resize(19);
  EXPECT_EQ(intervalOf(ratios), (PredictionInterval{81, 99}));
  EXPECT_EQ(intervalOf({2.5}), (PredictionInterval{2.5, 2.5}));
}

TEST(Interval, BoundsCountAsInside) {
  std::vector<double> ratios = {0.5, 0.8, 1, 1.2, 1.3};
  EXPECT_DOUBLE_EQ(shareInside({0.8, 1.2}, ratios), 0.6);
  EXPECT_DOUBLE_EQ(shareInside({0.8, 1.2}, {}), 0);
}

TEST(Interval, HalvesKeepASampleWithItsRepeat) {
  std::vector<SampleRole> roles(8);
  roles[5].repeatOf = 1;
  roles[7].repeatOf = 2;
  std::vector<size_t> heldOut = {1, 2, 4, 5, 7};
  auto [first, second] = halves(roles, heldOut);
  EXPECT_THAT(first, ElementsAre(1, 5, 4));
  EXPECT_THAT(second, ElementsAre(2, 7));
}

TEST(Interval, OneHalfJudgesTheOther) {
  std::vector<SampleRole> roles(4000);
  std::vector<size_t> heldOut(4000);
  std::iota(heldOut.begin(), heldOut.end(), size_t{0});
  MersenneTwister random(3);
  std::vector<double> ratio;
  for (size_t i = 0; i < 4000; ++i)
    ratio.push_back(1 + random.uniform());
  auto ratiosOf = [&](const std::vector<size_t> &indices) {
    std::vector<double> some;
    for (size_t i : indices)
      some.push_back(ratio[i]);
    return some;
  };
  std::optional<JudgedInterval> found = judgeInterval(roles, heldOut, ratiosOf);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fitted, 2000u);
  EXPECT_EQ(found->judged, 2000u);
  EXPECT_NEAR(found->interval.low, 1.05, 0.02);
  EXPECT_NEAR(found->interval.high, 1.95, 0.02);
  EXPECT_NEAR(found->inside, 0.9, 0.02);
  EXPECT_FALSE(judgeInterval(roles, std::span(heldOut).first(1), ratiosOf));
}

} // namespace
