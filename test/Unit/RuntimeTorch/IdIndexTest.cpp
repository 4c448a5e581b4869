//===- IdIndexTest.cpp - The hash table of ids beside std::map ------------===//
//
// Shows that an index of ids finds what std::map finds, for ids of all values,
// after any insertions and erasures.
//
//===----------------------------------------------------------------------===//

#include "Ids/IdIndex.h"
#include "neuroshard/Support/Random.h"

#include <gtest/gtest.h>
#include <limits>
#include <map>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(IdIndexTest, FindsIdsOfAllValues) {
  IdIndex index(6);
  const int64_t ids[] = {0, -1, 1, kLeast, kMost, kMost - 1};
  for (int32_t i = 0; i < 6; ++i)
    index.insert(ids[i], i);
  for (int32_t i = 0; i < 6; ++i)
    EXPECT_EQ(index.find(ids[i]), i);
  EXPECT_EQ(index.find(2), IdIndex::kNone);
  index.clear();
  for (int64_t id : ids)
    EXPECT_EQ(index.find(id), IdIndex::kNone);
}

TEST(IdIndexTest, FollowsAMap) {
  constexpr int64_t kSize = 40; // 64 places, so that searches are long
  constexpr int64_t kIds = 120;
  MersenneTwister random(7);
  IdIndex index(kSize);
  std::map<int64_t, int32_t> expected;
  for (int32_t round = 0; round < 20000; ++round) {
    int64_t id = random.between(0, kIds - 1) * 0x100000001;
    if (expected.erase(id))
      index.erase(id);
    else if (static_cast<int64_t>(expected.size()) < kSize) {
      index.insert(id, round);
      expected[id] = round;
    }
    int64_t other = random.between(0, kIds - 1) * 0x100000001;
    auto found = expected.find(other);
    ASSERT_EQ(index.find(other),
              found == expected.end() ? IdIndex::kNone : found->second)
        << "round " << round;
  }
}

TEST(IdIndexTest, SaysWhatItTakes) {
  for (int64_t size : {0, 1, 5, 1000})
    EXPECT_EQ(IdIndex(size).bytes(), IdIndex::bytesFor(size));
  EXPECT_EQ(IdIndex::bytesFor(100), 256 * 16);
}

} // namespace
} // namespace neuroshard::runtime
