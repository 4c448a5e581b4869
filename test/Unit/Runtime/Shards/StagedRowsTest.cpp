//===- StagedRowsTest.cpp - Caches in memory that is not the host's -------===//
//
// Shows that rows come to their places and go back by way of staging memory, in
// as many pieces as it takes, that the memory of a cache grows with what spills
// and that a cache whose memory does not is of no use from then on.
//
//===----------------------------------------------------------------------===//

#include "Shards/RowCache.h"
#include "Shards/RowMemory.h"
#include "TestManifest.h"
#include "neuroshard/Artifact/Error.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <numeric>

namespace neuroshard::runtime {
namespace {

/// Memory of the host that passes for that of a device.
class OtherMemory : public DeviceMemory {
public:
  std::byte *allocate(int64_t bytes) override {
    return static_cast<std::byte *>(std::calloc(1, static_cast<size_t>(bytes)));
  }
  void free(std::byte *memory) noexcept override { std::free(memory); }
  std::byte *reserve(int64_t bytes) override { return allocate(bytes); }
  void commit(std::byte *reserved, int64_t bytes) override {
    if (bytes > limit)
      fail("no memory of the device");
    committed[reserved] = bytes;
  }
  void release(std::byte *reserved) noexcept override { free(reserved); }
  void clear(std::byte *, int64_t) override {}
  void read(void *, const std::byte *, int64_t) override {}
  void write(std::byte *, const void *, int64_t) override {}

  int64_t limit = int64_t{1} << 40;
  std::map<std::byte *, int64_t> committed;
};

/// With room for a few rows at a time.
class FewCopies : public RowCopies {
public:
  Point now() override {
    ++points;
    return std::make_shared<int>(points);
  }
  std::span<std::byte> staging(int64_t bytes) override {
    room.resize(static_cast<size_t>(std::max<int64_t>(bytes, 300)));
    return room;
  }
  void write(const PlacedRows &rows, const std::byte *staged,
             const Point &) override {
    for (int64_t place : rows.places) {
      std::memcpy(rows.first + place * rows.rowBytes, staged,
                  static_cast<size_t>(rows.rowBytes));
      staged += rows.rowBytes;
    }
    ++calls;
  }
  void read(const PlacedRows &rows, std::byte *staged, const Point &) override {
    for (int64_t place : rows.places) {
      std::memcpy(staged, rows.first + place * rows.rowBytes,
                  static_cast<size_t>(rows.rowBytes));
      staged += rows.rowBytes;
    }
    ++calls;
  }

  int points = 0, calls = 0;
  std::vector<std::byte> room;
};

constexpr int64_t kRowsOfShard = 200, kWidth = 8;

class StagedRows : public testing::Test {
protected:
  StagedRows() {
    table.rows = kRowsOfShard;
    table.dim = kWidth;
    table.optimizer.emplace();
    table.optimizer->kind = OptimizerKind::RowWiseAdagrad;
    shard.rows = {0, kRowsOfShard};
    shard.cols = {0, kWidth};
    shard.tier = Tier::Dram;
    shard.cache = {32, CachePolicy::Lru};
    int64_t bytes = recordBytes(table.states(), kWidth, table.elementType);
    auto made = std::make_unique<RowMemory>(kRowsOfShard, bytes);
    store = made.get();
    for (int64_t row = 0; row < kRowsOfShard; ++row)
      for (int64_t i = 0; i <= kWidth; ++i)
        stored(row)[i] = static_cast<float>(100 * row + i);
    cache = std::make_unique<RowCache>(shard, table, std::move(made), queue,
                                       memory);
    cache->copyBy(&copies);
  }

  /// Weights, then the state of the row.
  float *stored(int64_t row) const {
    return reinterpret_cast<float *>(store->data() +
                                     row * store->recordBytes());
  }
  CacheBatch fetch(const std::vector<int64_t> &ids) {
    places.resize(ids.size());
    IdRun run{reinterpret_cast<const std::byte *>(ids.data()),
              reinterpret_cast<std::byte *>(places.data()), std::ssize(ids), 8};
    return cache->fetch({&run, 1});
  }
  float *weights(int64_t place) const {
    return reinterpret_cast<float *>(cache->weights()) + place * kWidth;
  }

  TableSpec table;
  ShardSpec shard;
  std::shared_ptr<OtherMemory> memory = std::make_shared<OtherMemory>();
  FewCopies copies;
  IoQueue queue;
  RowMemory *store = nullptr;
  std::unique_ptr<RowCache> cache;
  std::vector<int64_t> places;
};

TEST_F(StagedRows, ComeAndGoInPieces) {
  std::vector<int64_t> ids(20);
  std::iota(ids.begin(), ids.end(), 7);
  CacheBatch batch = fetch(ids);
  cache->wait(batch);
  // 300 bytes have room for 8 rows of 36; each piece has two arrays.
  EXPECT_EQ(copies.calls, 3 * 2);
  EXPECT_EQ(copies.points, 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    auto value = static_cast<float>(100 * ids[i]);
    EXPECT_EQ(weights(places[i])[0], value);
    EXPECT_EQ(weights(places[i])[kWidth - 1], value + kWidth - 1);
    EXPECT_EQ(cache->state(0)[places[i]], value + kWidth);
    weights(places[i])[3] = -value;
  }
  cache->markChanged(batch.places);
  cache->release(batch);
  cache->flush();
  for (int64_t id : ids) {
    EXPECT_EQ(stored(id)[3], static_cast<float>(-100 * id));
    EXPECT_EQ(stored(id)[4], static_cast<float>(100 * id + 4));
  }
  EXPECT_EQ(stored(6)[3], 603.0f);
}

TEST_F(StagedRows, MemoryGrowsWithWhatSpills) {
  int64_t weightBytes = kWidth * 4;
  ASSERT_EQ(memory->committed.size(), 2u);
  EXPECT_EQ(memory->committed[cache->weights()], 32 * weightBytes);
  std::vector<int64_t> ids(50);
  std::iota(ids.begin(), ids.end(), 0);
  CacheBatch batch = fetch(ids);
  cache->wait(batch);
  EXPECT_EQ(memory->committed[cache->weights()], 50 * weightBytes);
  EXPECT_EQ(weights(places[49])[2], 4902.0f);
  cache->release(batch);
  batch = fetch({60, 61});
  EXPECT_EQ(memory->committed[cache->weights()], 50 * weightBytes);
  cache->release(batch);
}

TEST_F(StagedRows, WithoutMemoryThereAreNoMoreRows) {
  memory->limit = 40 * kWidth * 4;
  std::vector<int64_t> ids(50);
  std::iota(ids.begin(), ids.end(), 0);
  EXPECT_THROW(fetch(ids), RuntimeError);
  // Its rows have places, but not their values.
  try {
    CacheBatch batch = fetch({0});
    cache->wait(batch);
    FAIL();
  } catch (const RuntimeError &error) {
    EXPECT_STREQ(error.what(), "no memory of the device");
  }
}

} // namespace
} // namespace neuroshard::runtime
