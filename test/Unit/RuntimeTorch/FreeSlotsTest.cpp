//===- FreeSlotsTest.cpp - Sets of free slots beside std::set -------------===//
//
// Shows that a set of slots gives its lowest, as std::set does, for sets of one
// word and of several levels.
//
//===----------------------------------------------------------------------===//

#include "Ids/FreeSlots.h"
#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>
#include <set>

namespace neuroshard::runtime {
namespace {

TEST(FreeSlotsTest, FollowsASet) {
  MersenneTwister random(3);
  for (int32_t numSlots : {1, 64, 65, 5000, 300000}) {
    FreeSlots slots(static_cast<size_t>(numSlots));
    std::set<int32_t> expected;
    for (int32_t round = 0; round < 3000; ++round) {
      auto slot = static_cast<int32_t>(random.between(0, numSlots - 1));
      if (expected.insert(slot).second) {
        slots.insert(slot);
      } else {
        ASSERT_EQ(slots.takeFirst(), *expected.begin());
        expected.erase(expected.begin());
      }
      ASSERT_EQ(slots.size(), static_cast<int64_t>(expected.size()));
    }
    for (int32_t slot : expected)
      ASSERT_EQ(slots.takeFirst(), slot);
    slots.insert(numSlots - 1);
    slots.clear();
    slots.insert(0);
    EXPECT_EQ(slots.takeFirst(), 0);
    EXPECT_EQ(slots.size(), 0);
  }
}

TEST(FreeSlotsTest, TakesABitForEachSlot) {
  EXPECT_EQ(FreeSlots(0).bytes(), 8);
  EXPECT_EQ(FreeSlots(64).bytes(), 8);
  EXPECT_EQ(FreeSlots(65).bytes(), 24);
  EXPECT_EQ(FreeSlots(1 << 18).bytes(), (1 << 15) + (1 << 9) + 8);
}

} // namespace
} // namespace neuroshard::runtime
