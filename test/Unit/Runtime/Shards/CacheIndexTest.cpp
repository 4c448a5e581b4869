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

/// A mistake of whoever moves rows.
enum class Mistake {
  None,
  DropWrite,    ///< a row that leaves is not written.
  ReleaseEarly, ///< rows may leave before their update.
};

/// Trains rows that are moved as the index says, with the rows of the next
/// batch brought before. Returns how many values are not those of rows in one
/// array.
int64_t wrongValues(int64_t cacheRows, Mistake mistake, int64_t &mostSpilled) {
  constexpr int64_t kRows = 500;
  std::mt19937 random(3);
  CacheIndex index({cacheRows, CachePolicy::Lru}, kRows);
  std::vector<int64_t> file(kRows, 0), expected(kRows, 0);
  std::map<int64_t, int64_t> memory;
  int64_t wrong = 0, writes = 0;
  auto write = [&](const std::vector<CachedRow> &rows) {
    for (const CachedRow &row : rows)
      if (mistake != Mistake::DropWrite || ++writes % 50 != 0)
        file[static_cast<size_t>(row.row)] = memory[row.place];
  };
  std::optional<CacheBatch> ahead;
  std::vector<int64_t> rowsAhead;
  for (int64_t step = 0; step < 300; ++step) {
    std::vector<int64_t> rows = rowsAhead;
    std::optional<CacheBatch> batch = ahead;
    if (batch && mistake == Mistake::ReleaseEarly)
      write(index.release(*batch));
    rowsAhead = randomRows(random, kRows, 60);
    ahead = bring(index, rowsAhead);
    write(ahead->written);
    for (const CachedRow &row : ahead->fetched)
      memory[row.place] = file[static_cast<size_t>(row.row)];
    mostSpilled = std::max(mostSpilled, index.numSpilled());
    if (!batch)
      continue;
    for (int64_t row : std::set<int64_t>(rows.begin(), rows.end())) {
      int64_t &wanted = expected[static_cast<size_t>(row)];
      int64_t place = index.placeOf(row);
      wrong += place < 0 || memory[place] != wanted;
      wanted += step;
      if (place < 0)
        continue;
      memory[place] += step;
      index.markChanged(place);
    }
    if (mistake != Mistake::ReleaseEarly)
      write(index.release(*batch));
  }
  write(index.takeChanged());
  for (size_t row = 0; row < kRows; ++row)
    wrong += file[row] != expected[row];
  return wrong + static_cast<int64_t>(index.takeChanged().size());
}

TEST(CacheIndex, MovesKeepTheValuesOfAllRows) {
  for (int64_t cacheRows : {32, 64, 256}) {
    int64_t mostSpilled = 0;
    EXPECT_EQ(wrongValues(cacheRows, Mistake::None, mostSpilled), 0);
    EXPECT_EQ(mostSpilled > 0, cacheRows < 256) << cacheRows;
    EXPECT_GT(wrongValues(cacheRows, Mistake::DropWrite, mostSpilled), 0);
    // The last batch's rows leave where there is room for few others.
    EXPECT_EQ(wrongValues(cacheRows, Mistake::ReleaseEarly, mostSpilled) > 0,
              cacheRows < 256);
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
