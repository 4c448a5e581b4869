//===- CacheHitsTest.cpp - Predicted hits beside replayed ids -------------===//
//
// Shows that the planner's expected hits of a row cache are within 2 points of
// those of the runtime's cache with LRU and 5 with LFU, for Zipf-distributed
// ids and for uniform ones.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Planner/CacheHits.h"
#include "Shards/CacheIndex.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kRows = 50000, kIds = 2048;

/// The probability of each row, by rank.
std::vector<double> zipf(double exponent) {
  std::vector<double> mass;
  double sum = 0;
  for (int64_t rank = 1; rank <= kRows; ++rank)
    sum += mass.emplace_back(std::pow(static_cast<double>(rank), -exponent));
  for (double &one : mass)
    one /= sum;
  return mass;
}

/// What `neuroshard profile` would say of ids with these probabilities.
AccessStatistics statisticsOf(const std::vector<double> &mass) {
  AccessStatistics access;
  access.batch = 1;
  double sum = 0, next = 1;
  for (int64_t rank = 1; rank <= kRows; ++rank) {
    sum += mass[static_cast<size_t>(rank - 1)];
    if (static_cast<double>(rank) < next && rank < kRows)
      continue;
    access.rowMass.push_back(
        {static_cast<double>(rank) / kRows, std::min(sum, 1.0)});
    next = std::max(next + 1, next * 1.1);
  }
  return access;
}

/// In the last 300 batches. LFU needs thousands until it knows the hottest
/// rows.
CacheUse replay(const CacheSpec &cache, const std::vector<double> &mass) {
  std::mt19937_64 random(1);
  std::discrete_distribution<int64_t> draw(mass.begin(), mass.end());
  CacheIndex index(cache, kRows);
  constexpr int kCounted = 300;
  int batches = cache.policy == CachePolicy::Lru ? 600 : 1500;
  CacheUse sum;
  std::vector<int64_t> rows(kIds), places(kIds);
  for (int number = 0; number < batches; ++number) {
    for (int64_t &row : rows)
      row = draw(random);
    index.beginBatch();
    CacheBatch batch;
    index.find(rows, places.data(), batch);
    for (size_t i = 0; i < rows.size(); ++i)
      if (places[i] < 0)
        index.admit(rows[i], batch);
    index.release(batch);
    if (number < batches - kCounted)
      continue;
    sum.rows += static_cast<double>(batch.places.size());
    sum.hits += static_cast<double>(batch.hits());
  }
  return {sum.rows / kCounted, sum.hits / kCounted};
}

TEST(CacheHits, AreThoseOfReplayedIds) {
  for (double exponent : {0.0, 0.8, 1.0, 1.15, 1.3}) {
    std::vector<double> mass = zipf(exponent);
    Table table;
    table.rows = kRows;
    table.access = statisticsOf(mass);
    for (double share : {0.05, 0.3})
      for (CachePolicy policy : {CachePolicy::Lru, CachePolicy::Lfu}) {
        CacheSpec cache{static_cast<int64_t>(share * kRows) / kCacheWays *
                            kCacheWays,
                        policy};
        CacheUse found = replay(cache, mass);
        CacheUse expected = expectedCacheUse(table, kRows, cache, kIds, kIds);
        EXPECT_NEAR(expected.hitRate(), found.hitRate(),
                    policy == CachePolicy::Lru ? 0.02 : 0.05)
            << "Zipf " << exponent << ", cache " << share << ", "
            << toString(policy);
        EXPECT_NEAR(expected.rows, found.rows, 0.01 * found.rows);
      }
  }
}

} // namespace
} // namespace neuroshard::runtime
