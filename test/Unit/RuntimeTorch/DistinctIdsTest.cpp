//===- DistinctIdsTest.cpp - Distinct ids, by owner -----------------------===//
//
// Shows that a batch names its ids by places among the distinct ones, that
// these lie by owner, in the order of the batch, and that owners have about as
// many, also of consecutive ids.
//
//===----------------------------------------------------------------------===//

#include "Ids/DistinctIds.h"
#include "Ids/IdHash.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <set>

namespace neuroshard::runtime {
namespace {

TEST(DistinctIdsTest, KeepsTheOrderOfTheBatch) {
  const std::vector<int64_t> batch = {7, -3, 7, 9, -3, -3, 0};
  DistinctFinder finder;
  const DistinctIds &found = finder.find(batch, 1);
  EXPECT_EQ(found.ids, (std::vector<int64_t>{7, -3, 9, 0}));
  EXPECT_EQ(found.places, (std::vector<int32_t>{0, 1, 0, 2, 1, 1, 3}));
  EXPECT_EQ(found.counts, (std::vector<int64_t>{4}));
}

TEST(DistinctIdsTest, SortsByOwner) {
  std::vector<int64_t> batch;
  for (int64_t i = 0; i < 900; ++i)
    batch.push_back(i * i % 401 - 200);
  DistinctFinder finder; // of one batch after the other
  for (int32_t ranks : {2, 3, 8}) {
    const DistinctIds &found = finder.find(batch, ranks);
    std::set<int64_t> all(batch.begin(), batch.end());
    ASSERT_EQ(found.ids.size(), all.size());
    for (size_t i = 0; i < batch.size(); ++i)
      ASSERT_EQ(found.ids[static_cast<size_t>(found.places[i])], batch[i]);
    size_t next = 0;
    for (int32_t rank = 0; rank < ranks; ++rank) {
      auto firstSeen = batch.begin();
      for (int64_t i = 0; i < found.counts[static_cast<size_t>(rank)]; ++i) {
        int64_t id = found.ids[next++];
        ASSERT_EQ(ownerOfId(id, ranks), rank);
        auto seen = std::ranges::find(batch, id);
        ASSERT_LE(firstSeen, seen);
        firstSeen = seen;
      }
    }
    EXPECT_EQ(next, found.ids.size());
  }
}

TEST(DistinctIdsTest, OwnersHaveAboutAsMany) {
  constexpr int64_t kIds = 100000;
  DistinctFinder finder;
  for (int64_t stride : {int64_t{1}, int64_t{4}, int64_t{1} << 32}) {
    std::vector<int64_t> batch;
    for (int64_t i = 0; i < kIds; ++i)
      batch.push_back(i * stride);
    // Five standard deviations of a binomial distribution are 685.
    for (int64_t count : finder.find(batch, 4).counts)
      EXPECT_NEAR(count, kIds / 4, 685) << "stride " << stride;
  }
}

} // namespace
} // namespace neuroshard::runtime
