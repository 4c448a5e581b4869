//===- IdGeneratorTest.cpp - Batches show the histogram they come from ----===//

#include "neuroshard/Collect/IdGenerator.h"
#include "neuroshard/Collect/TablePool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>

using namespace neuroshard;

namespace {

/// Distinct ids, and the share of them in each bin.
struct Histogram {
  double ids = 0;
  std::array<double, kReuseBins> shares = {};
};

/// Of the next `lookups` draws.
Histogram drawHistogram(IdGenerator &ids, int64_t lookups) {
  std::unordered_map<int64_t, int64_t> counts;
  for (int64_t i = 0; i < lookups; ++i)
    ++counts[ids.next()];
  Histogram histogram;
  histogram.ids = static_cast<double>(counts.size());
  for (auto [row, count] : counts) {
    size_t bin = 0;
    while (bin + 1 < kReuseBins && count > kReuseBinUpper[bin])
      ++bin;
    histogram.shares[bin] += 1 / histogram.ids;
  }
  return histogram;
}

TEST(Permutation, HitsEveryValueOnce) {
  for (uint64_t size : {1, 2, 3, 4, 5, 16, 17, 1000, 4096, 65537}) {
    Permutation permutation(size, 42);
    std::set<uint64_t> values;
    for (uint64_t i = 0; i < size; ++i) {
      EXPECT_LT(permutation(i), size);
      values.insert(permutation(i));
    }
    EXPECT_EQ(values.size(), size);
  }
}

TEST(IdGenerator, BatchOfTheMeasuredSizeShowsTheHistogram) {
  TablePool pool = makeTablePool(1);
  int checked = 0;
  for (size_t i = 0; i < pool.tables.size() && checked < 20; i += 7) {
    const AccessStatistics &access = (*pool.access)[i];
    double lookups = pool.tables[i].pooling * static_cast<double>(access.batch);
    // Where there are too few rows, ids must repeat more than the histogram
    // says.
    if (static_cast<double>(pool.tables[i].rows) < lookups || lookups > 2e6)
      continue;
    ++checked;
    IdGenerator ids(&access, lookups, pool.tables[i].rows, i);
    // One id of the hottest bins more or less is up to a tenth of the batch.
    EXPECT_NEAR(static_cast<double>(ids.batchLookups()), lookups,
                0.1 * lookups);
    // A batch, and the one after it: another part of the cold rows.
    for (int batch = 0; batch < 2; ++batch) {
      Histogram drawn = drawHistogram(ids, ids.batchLookups());
      for (size_t bin = 0; bin < kReuseBins; ++bin)
        EXPECT_NEAR(drawn.shares[bin], access.reuse[bin],
                    0.002 + 1.0 / drawn.ids)
            << "table " << i << " bin " << bin << " batch " << batch;
    }
  }
  EXPECT_EQ(checked, 20);
}

TEST(IdGenerator, HotRowsComeBackAndColdOnesDoNot) {
  AccessStatistics access;
  access.batch = 1000;
  access.reuse[0] = 0.5; // once
  access.reuse[4] = 0.5; // 9 to 16 times
  IdGenerator ids(&access, 6750, 100000, 3);
  std::array<std::map<int64_t, int>, 2> batches;
  for (auto &batch : batches)
    for (int i = 0; i < 6750; ++i)
      ++batch[ids.next()];
  int hotBack = 0, hot = 0, coldBack = 0;
  for (auto [row, count] : batches[0]) {
    hot += count > 1;
    hotBack += count > 1 && batches[1].contains(row);
    coldBack += count == 1 && batches[1].contains(row);
  }
  EXPECT_NEAR(hot, 500, 5);
  EXPECT_GT(hotBack, 490);
  EXPECT_LT(coldBack, 10);
}

TEST(IdGenerator, WithoutStatisticsIdsAreUniform) {
  IdGenerator ids(nullptr, 0, 10, 5);
  std::array<int, 10> counts = {};
  for (int i = 0; i < 10000; ++i)
    ++counts[static_cast<size_t>(ids.next())];
  for (int count : counts)
    EXPECT_NEAR(count, 1000, 150);
}

TEST(IdGenerator, StaysInsideATableTooSmallForItsHistogram) {
  AccessStatistics access;
  access.batch = 100;
  access.reuse[0] = 1;
  IdGenerator ids(&access, 5000, 37, 1);
  for (int i = 0; i < 20000; ++i) {
    int64_t id = ids.next();
    ASSERT_GE(id, 0);
    ASSERT_LT(id, 37);
  }
}

TEST(TablePool, HasThePublishedMeans) {
  TablePool pool = makeTablePool(856);
  ASSERT_EQ(pool.tables.size(), 856u);
  double rows = 0, pooling = 0, meanOnce = 0;
  for (size_t i = 0; i < pool.tables.size(); ++i) {
    rows += static_cast<double>(pool.tables[i].rows) / 856;
    pooling += pool.tables[i].pooling / 856;
    meanOnce += (*pool.access)[i].reuse[0] / 856;
  }
  EXPECT_NEAR(rows, 4107458, 0.05 * 4107458);
  EXPECT_NEAR(pooling, 15, 0.75);
  EXPECT_NEAR(meanOnce, 0.473, 0.1);
}

} // namespace
