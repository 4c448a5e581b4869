//===- RowCacheTest.cpp - Training through a cache beside one array -------===//
//
// Shows that rows which are trained through a cache, with the rows of the next
// batch brought before, have the values of rows in one array at every step, and
// that this comparison notices a write-back that is lost and a row that leaves
// before its update.
//
//===----------------------------------------------------------------------===//

#include "Shards/RowCache.h"
#include "Shards/RowMemory.h"
#include "TestManifest.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <random>
#include <set>

namespace neuroshard::runtime {
namespace {

enum class TrainingMistake { None, LoseWrites, ReleaseEarly };

/// Host memory that forgets one row in 50 that is written to it, on request.
class ForgetfulMemory : public RowMemory {
public:
  ForgetfulMemory(int64_t rows, int64_t recordBytes, bool forgets)
      : RowMemory(rows, recordBytes), forgets(forgets) {}

  void transfer(RowIo &io, IoDirection direction,
                std::span<const CachedRow> rows,
                std::span<const RecordPart> parts) const override {
    std::vector<CachedRow> kept;
    for (const CachedRow &row : rows)
      if (direction == IoDirection::Read || !forgets || ++writes % 50 != 0)
        kept.push_back(row);
    RowMemory::transfer(io, direction, kept, parts);
  }

private:
  const bool forgets;
  mutable int64_t writes = 0;
};

constexpr int64_t kTrainedRows = 500, kTrainedWidth = 4;

/// Rows of kTrainedWidth weights and one state, all alike, trained with random
/// ids.
class TrainedRows {
public:
  TrainedRows(CacheSpec spec, TrainingMistake mistake)
      : mistake(mistake), expected(kTrainedRows, 0) {
    TableSpec table;
    table.rows = kTrainedRows;
    table.dim = kTrainedWidth;
    table.optimizer.emplace();
    table.optimizer->kind = OptimizerKind::RowWiseAdagrad;
    ShardSpec shard;
    shard.rows = {0, kTrainedRows};
    shard.cols = {0, kTrainedWidth};
    shard.tier = Tier::Ssd;
    shard.cache = spec;
    int64_t bytes =
        recordBytes(table.states(), kTrainedWidth, table.elementType);
    cache = std::make_unique<RowCache>(
        shard, table,
        std::make_unique<ForgetfulMemory>(
            kTrainedRows, bytes, mistake == TrainingMistake::LoseWrites),
        queue, nullptr);
  }

  /// Number of values that were not those of one array, in all steps and in the
  /// rows that were written at the end.
  int64_t wrongAfter(int steps) {
    std::vector<int64_t> next = drawIds();
    Sent sent = send(next);
    for (int step = 1; step <= steps; ++step) {
      std::vector<int64_t> ids = std::move(next);
      Sent current = std::move(sent);
      cache->wait(current.batch);
      if (mistake == TrainingMistake::ReleaseEarly)
        cache->release(current.batch);
      next = drawIds();
      sent = send(next);
      if (mistake == TrainingMistake::ReleaseEarly)
        cache->wait(sent.batch);
      train(ids, current, static_cast<float>(step));
      if (mistake != TrainingMistake::ReleaseEarly)
        cache->release(current.batch);
      if (step % 40 == 0)
        countStored();
    }
    cache->wait(sent.batch);
    cache->release(sent.batch);
    countStored();
    return wrong;
  }

  CacheFigures figures() const { return cache->figures(); }

private:
  struct Sent {
    CacheBatch batch;
    std::vector<int64_t> places;
  };

  /// Low rows are hot.
  std::vector<int64_t> drawIds() {
    std::vector<int64_t> ids;
    for (int i = 0; i < 60; ++i)
      ids.push_back(static_cast<int64_t>(
          random() % kTrainedRows * (random() % kTrainedRows) / kTrainedRows));
    return ids;
  }

  Sent send(const std::vector<int64_t> &ids) {
    Sent sent{{}, std::vector<int64_t>(ids.size())};
    IdRun run{reinterpret_cast<const std::byte *>(ids.data()),
              reinterpret_cast<std::byte *>(sent.places.data()),
              std::ssize(ids), 8};
    sent.batch = cache->fetch({&run, 1});
    return sent;
  }

  void train(const std::vector<int64_t> &ids, const Sent &sent, float amount) {
    cache->markChanged(sent.batch.places);
    auto *weights = reinterpret_cast<float *>(cache->weights());
    std::set<int64_t> seen;
    for (size_t i = 0; i < ids.size(); ++i) {
      if (!seen.insert(ids[i]).second)
        continue;
      float &wanted = expected[static_cast<size_t>(ids[i])];
      float *row = weights + sent.places[i] * kTrainedWidth;
      float &state = cache->state(0)[sent.places[i]];
      wrong += row[0] != wanted || row[kTrainedWidth - 1] != wanted ||
               state != wanted;
      wanted += amount;
      for (int64_t column = 0; column < kTrainedWidth; ++column)
        row[column] += amount;
      state += amount;
    }
  }

  void countStored() {
    cache->flush();
    for (int64_t row = 0; row < kTrainedRows; ++row) {
      float stored = 0;
      std::memcpy(&stored,
                  cache->rows().data() + row * cache->rows().recordBytes(),
                  sizeof(stored));
      wrong += stored != expected[static_cast<size_t>(row)];
    }
  }

  const TrainingMistake mistake;
  std::mt19937_64 random{5};
  std::vector<float> expected; ///< by row.
  IoQueue queue;
  std::unique_ptr<RowCache> cache;
  int64_t wrong = 0;
};

constexpr CacheSpec kCaches[] = {{32, CachePolicy::Lru},
                                 {96, CachePolicy::Lfu},
                                 {256, CachePolicy::Lru},
                                 {512, CachePolicy::Lfu}};

TEST(RowCache, TrainsToTheValuesOfOneArray) {
  for (CacheSpec spec : kCaches) {
    TrainedRows rows(spec, TrainingMistake::None);
    EXPECT_EQ(rows.wrongAfter(300), 0) << spec.rows << " places";
    EXPECT_GT(rows.figures().written, 0);
    EXPECT_EQ(rows.figures().mostSpilled > 0, spec.rows < 100);
  }
}

TEST(RowCache, IsSeenToLoseWrites) {
  for (CacheSpec spec : kCaches)
    EXPECT_GT(TrainedRows(spec, TrainingMistake::LoseWrites).wrongAfter(300), 0)
        << spec.rows << " places";
}

/// Where there is room for all rows of two batches none leaves.
TEST(RowCache, IsSeenToLetRowsLeaveEarly) {
  for (CacheSpec spec : std::span(kCaches).first(2))
    EXPECT_GT(TrainedRows(spec, TrainingMistake::ReleaseEarly).wrongAfter(300),
              0)
        << spec.rows << " places";
}

} // namespace
} // namespace neuroshard::runtime
