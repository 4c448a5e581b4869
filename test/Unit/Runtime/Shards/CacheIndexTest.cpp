//===- CacheIndexTest.cpp - Row caches beside a plain simulation ----------===//
//
// Shows that a cache finds, admits and drops the rows that a simulation of its
// policy does, keeps what is in use, and says what must be written.
//
//===----------------------------------------------------------------------===//

#include "Shards/CacheIndex.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <set>

namespace neuroshard::runtime {
namespace {

/// Brings the rows of a batch, as RowCache does.
CacheBatch bring(CacheIndex &index, const std::vector<int64_t> &rows) {
  index.beginBatch();
  CacheBatch batch;
  std::vector<int64_t> places(rows.size());
  index.find(rows, places.data(), batch);
  for (size_t i = 0; i < rows.size(); ++i)
    if (places[i] < 0)
      index.admit(rows[i], batch);
  return batch;
}

/// One set of a cache as lists, with one batch in use at a time.
struct SimulatedSet {
  struct Row {
    int64_t row;
    int64_t lastBatch;
    int64_t batches;
  };
  std::vector<Row> rows;

  Row *find(int64_t row) {
    auto found = std::ranges::find(rows, row, &Row::row);
    return found == rows.end() ? nullptr : &*found;
  }
  void add(int64_t row, CachePolicy policy, int64_t batch) {
    if (rows.size() < kCacheWays) {
      rows.push_back({row, batch, 1});
      return;
    }
    auto leaves = [&](const Row &a, const Row &b) {
      bool isUsedA = a.lastBatch == batch, isUsedB = b.lastBatch == batch;
      if (isUsedA != isUsedB)
        return isUsedB;
      if (policy == CachePolicy::Lfu && a.batches != b.batches)
        return a.batches < b.batches;
      return a.lastBatch < b.lastBatch;
    };
    *std::ranges::min_element(rows, leaves) = {row, batch, 1};
  }
};

std::vector<int64_t> randomRows(std::mt19937 &random, int64_t rows, int count) {
  std::vector<int64_t> found;
  for (int i = 0; i < count; ++i) { // low rows are hot
    auto first = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    auto second = static_cast<int64_t>(random() % static_cast<uint64_t>(rows));
    found.push_back(first * second / rows);
  }
  return found;
}

TEST(CacheIndex, OneSetIsThatOfASimulation) {
  for (CachePolicy policy : {CachePolicy::Lru, CachePolicy::Lfu}) {
    std::mt19937 random(7);
    CacheIndex index({kCacheWays, policy}, 100);
    SimulatedSet set;
    for (int64_t batch = 1; batch <= 2000; ++batch) {
      std::vector<int64_t> rows = randomRows(random, 100, 20);
      std::set<int64_t> distinct(rows.begin(), rows.end());
      int64_t hits = 0;
      std::vector<int64_t> missing;
      for (int64_t row : distinct)
        if (SimulatedSet::Row *there = set.find(row)) {
          ++hits;
          there->lastBatch = batch;
          ++there->batches;
        }
      for (int64_t row : rows)
        if (!set.find(row))
          set.add(row, policy, batch);
      CacheBatch used = bring(index, rows);
      ASSERT_EQ(used.hits(), hits) << "batch " << batch;
      ASSERT_EQ(used.places.size(), distinct.size());
      index.release(used);
      for (int64_t row = 0; row < 100; ++row)
        ASSERT_EQ(index.placeOf(row) >= 0, set.find(row) != nullptr)
            << "row " << row << " after batch " << batch;
    }
  }
}

/// Memory that is moved as the index says has the values that a map has.
TEST(CacheIndex, MovesKeepTheValuesOfAllRows) {
  constexpr int64_t kRows = 500;
  for (int64_t cacheRows : {32, 64, 256}) {
    std::mt19937 random(3);
    CacheIndex index({cacheRows, CachePolicy::Lru}, kRows);
    std::vector<int> file(kRows, 0), expected(kRows, 0);
    std::map<int64_t, int> memory;
    auto move = [&](const CacheBatch &batch) {
      for (const CachedRow &row : batch.written)
        file[static_cast<size_t>(row.row)] = memory.at(row.place);
      for (const CachedRow &row : batch.fetched)
        memory[row.place] = file[static_cast<size_t>(row.row)];
    };
    std::optional<CacheBatch> ahead;
    std::vector<int64_t> rowsAhead;
    int64_t mostSpilled = 0;
    for (int step = 0; step < 300; ++step) {
      // The rows of the next batch come while this one is in use.
      std::vector<int64_t> rows = rowsAhead;
      std::optional<CacheBatch> batch = ahead;
      rowsAhead = randomRows(random, kRows, 60);
      ahead = bring(index, rowsAhead);
      move(*ahead);
      mostSpilled = std::max(mostSpilled, index.numSpilled());
      if (!batch)
        continue;
      for (int64_t row : std::set<int64_t>(rows.begin(), rows.end())) {
        int64_t place = index.placeOf(row);
        ASSERT_GE(place, 0);
        ASSERT_EQ(memory.at(place), expected[static_cast<size_t>(row)]);
        memory[place] += step;
        expected[static_cast<size_t>(row)] += step;
        index.markChanged(place);
      }
      for (const CachedRow &row : index.release(*batch))
        file[static_cast<size_t>(row.row)] = memory.at(row.place);
    }
    EXPECT_EQ(mostSpilled > 0, cacheRows < 256) << cacheRows;
    for (const CachedRow &row : index.takeChanged())
      file[static_cast<size_t>(row.row)] = memory.at(row.place);
    EXPECT_TRUE(index.takeChanged().empty());
    EXPECT_EQ(file, expected);
  }
}

TEST(CacheIndex, KeepsWhatIsInUseWhenItIsEmptied) {
  CacheIndex index({64, CachePolicy::Lru}, 1000);
  CacheBatch first = bring(index, {1, 2, 3});
  CacheBatch second = bring(index, {3, 4});
  index.release(first);
  std::vector<CachedRow> kept = index.dropUnused();
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(index.placeOf(1), -1);
  for (const CachedRow &row : kept)
    EXPECT_EQ(index.placeOf(row.row), row.place);
  EXPECT_EQ(std::set<int64_t>({kept[0].row, kept[1].row}),
            std::set<int64_t>({3, 4}));
}

} // namespace
} // namespace neuroshard::runtime
