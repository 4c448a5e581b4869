//===- RandomTest.cpp - The generators draw the published numbers ---------===//
///
/// \file
/// Both generators in one program: they once had one name and the same inline
/// members, so that a program that linked both ran one on the other's state.
//===----------------------------------------------------------------------===//

#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace neuroshard;

namespace {

/// Steele, Lea, Flood's reference implementation from seed 0.
TEST(Random, SplitMix64DrawsTheReferenceNumbers) {
  SplitMix64 random(0);
  EXPECT_EQ(random.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(random.next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(random.next(), 0x06c45d188009454fu);
}

/// The C++ standard gives the 10,000th number from seed 5489.
TEST(Random, MersenneTwisterDrawsTheStandardsNumber) {
  MersenneTwister random(5489);
  uint64_t drawn = 0;
  for (int i = 0; i < 10000; ++i)
    drawn = random.next();
  EXPECT_EQ(drawn, 9981545732273789042u);
}

TEST(Random, EachKeepsItsOwnStateAndRange) {
  SplitMix64 small(7);
  MersenneTwister large(7);
  EXPECT_LT(sizeof(small), sizeof(large));
  SplitMix64 smallAlone(7);
  MersenneTwister largeAlone(7);
  int equal = 0;
  for (int i = 0; i < 1000; ++i) {
    int64_t a = small.below(1000);
    size_t b = large.below(1000);
    EXPECT_EQ(a, smallAlone.below(1000));
    EXPECT_EQ(b, largeAlone.below(1000));
    EXPECT_TRUE(a >= 0 && a < 1000 && b < 1000);
    equal += static_cast<size_t>(a) == b;
  }
  EXPECT_LT(equal, 20);
}

TEST(Random, BetweenReachesBothEnds) {
  MersenneTwister random(1);
  bool low = false, high = false;
  for (int i = 0; i < 1000; ++i) {
    int64_t drawn = random.between(-2, 3);
    ASSERT_TRUE(drawn >= -2 && drawn <= 3);
    low |= drawn == -2;
    high |= drawn == 3;
  }
  EXPECT_TRUE(low && high);
}

TEST(Random, ShuffleKeepsTheValues) {
  std::vector<int> values = {1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<int> shuffled = values;
  MersenneTwister(3).shuffle(shuffled);
  EXPECT_NE(shuffled, values);
  std::sort(shuffled.begin(), shuffled.end());
  EXPECT_EQ(shuffled, values);
}

} // namespace
