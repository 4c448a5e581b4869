//===- PartsTest.cpp - The runtime's building blocks ----------------------===//
//
// Shows that conversions round as the hardware's types do, that the sort is
// stable, that the thread pool calls every index once and passes exceptions
// on, and that initial weights do not depend on the plan.
//
//===----------------------------------------------------------------------===//

#include "Step/RowSort.h"
#include "TestModels.h"
#include "neuroshard/Runtime/Initializer.h"
#include "neuroshard/Runtime/Numerics.h"
#include "neuroshard/Runtime/ThreadPool.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>

using namespace neuroshard::runtime;
using namespace neuroshard::test;

namespace {

TEST(Numerics, EveryF16ConvertsExactly) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    auto half = static_cast<uint16_t>(bits);
    float expected = static_cast<float>(std::bit_cast<_Float16>(half));
    float value = fromF16(half);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_TRUE(std::isnan(fromF16(toF16(value)))) << bits;
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected))
        << bits;
    ASSERT_EQ(toF16(value), half);
  }
}

TEST(Numerics, F16RoundsToNearestEven) {
  // All f32 on a grid fine enough to hit every tie between two f16, from
  // zero to infinity.
  for (uint64_t bits = 0; bits <= 0x7f800000u; bits += 0x800) {
    for (uint32_t offset : {0u, 1u, 0x7ffu}) {
      float value = std::bit_cast<float>(static_cast<uint32_t>(bits) + offset);
      if (std::isnan(value))
        continue;
      auto expected = std::bit_cast<uint16_t>(static_cast<_Float16>(value));
      ASSERT_EQ(toF16(value), expected) << value;
      ASSERT_EQ(toF16(-value), expected | 0x8000) << value;
    }
  }
}

TEST(Numerics, BF16RoundsToNearestEven) {
  auto at = [](uint32_t bits) { return toBF16(std::bit_cast<float>(bits)); };
  EXPECT_EQ(at(0x3f800000), 0x3f80);
  EXPECT_EQ(at(0x3f807fff), 0x3f80); // below the tie
  EXPECT_EQ(at(0x3f808000), 0x3f80); // tie to even
  EXPECT_EQ(at(0x3f808001), 0x3f81);
  EXPECT_EQ(at(0x3f818000), 0x3f82); // tie to even, up
  EXPECT_EQ(at(0xbf818000), 0xbf82);
  EXPECT_EQ(at(0x7f7fffff), 0x7f80); // beyond the largest
  EXPECT_EQ(at(0x7f800000), 0x7f80);
  EXPECT_EQ(at(0x00000001), 0x0000);
  EXPECT_TRUE(std::isnan(fromBF16(at(0x7f800001))));
  EXPECT_EQ(fromBF16(0x3fc0), 1.5f);
}

TEST(RowSort, IsStableAndGroupsRows) {
  std::mt19937 random(1);
  for (int64_t numRows :
       {int64_t{1}, int64_t{2}, int64_t{3000}, int64_t{1} << 32}) {
    for (int64_t count : {0, 1, 1000, 40000}) {
      std::vector<RowKey> keys;
      for (int64_t i = 0; i < count; ++i)
        keys.push_back(
            makeRowKey((static_cast<uint64_t>(random()) << 16 ^ random()) %
                           static_cast<uint64_t>(numRows),
                       static_cast<uint64_t>(i)));
      std::vector<RowKey> expected = keys;
      std::stable_sort(expected.begin(), expected.end(),
                       [](RowKey a, RowKey b) { return a >> 32 < b >> 32; });
      auto pool = std::make_shared<BufferPool>();
      SortedRows sorted = sortRows(*pool, keys.data(), count, numRows);
      std::vector<RowKey> found;
      for (int64_t u = 0; u < sorted.numRows; ++u)
        for (int64_t k = as<int64_t>(sorted.segments)[u];
             k < as<int64_t>(sorted.segments)[u + 1]; ++k)
          found.push_back(
              makeRowKey(static_cast<uint64_t>(as<int64_t>(sorted.rows)[u]),
                         as<uint32_t>(sorted.order)[k]));
      ASSERT_EQ(found, expected);
      std::set<uint64_t> distinct;
      for (RowKey key : expected)
        distinct.insert(key >> 32);
      EXPECT_EQ(sorted.numRows, static_cast<int64_t>(distinct.size()));
    }
  }
}

TEST(ThreadPool, CallsEveryIndexOnce) {
  for (int threads : {1, 2, 7}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.numThreads(), threads);
    for (int64_t count : {0, 1, 2, 5, 1000}) {
      std::vector<std::atomic<int>> calls(static_cast<size_t>(count) + 1);
      pool.parallelFor(count,
                       [&](int64_t i) { ++calls[static_cast<size_t>(i)]; });
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(calls[static_cast<size_t>(i)], 1);
      EXPECT_EQ(calls[static_cast<size_t>(count)], 0);
    }
  }
}

TEST(ThreadPool, NestedCallsRun) {
  ThreadPool pool(3);
  std::atomic<int> calls = 0;
  pool.parallelFor(
      10, [&](int64_t) { pool.parallelFor(10, [&](int64_t) { ++calls; }); });
  EXPECT_EQ(calls, 100);
}

TEST(ThreadPool, RethrowsAndGoesOn) {
  ThreadPool pool(3);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.parallelFor(50,
                                  [&](int64_t i) {
                                    if (i == 17)
                                      throw std::runtime_error("17");
                                  }),
                 std::runtime_error);
    std::atomic<int> calls = 0;
    pool.parallelFor(50, [&](int64_t) { ++calls; });
    EXPECT_EQ(calls, 50);
  }
}

TEST(BufferPool, HandsOutAgainWhatCameBack) {
  auto pool = std::make_shared<BufferPool>();
  std::byte *first = pool->acquire(100000).get();
  int64_t held = pool->heldBytes();
  for (int step = 0; step < 10; ++step) {
    Buffer buffer = pool->acquire(100000 + step * 100);
    EXPECT_EQ(buffer.get(), first);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.get()) % 64, 0u);
  }
  EXPECT_EQ(pool->heldBytes(), held);
  Buffer a = pool->acquire(100000), b = pool->acquire(100000);
  EXPECT_NE(a.get(), b.get());
}

TEST(Initialization, DoesNotDependOnThePlan) {
  Model model = makeModel(Optimizer::Adagrad);
  model.initialAccumulator = 0.125f;
  std::vector<std::vector<float>> expected;
  for (PlanKind kind : {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
                        PlanKind::RowColumn, PlanKind::Mixed}) {
    TestWorld world(model, makePlan(model, kind, 4), 4, 2);
    ASSERT_EQ(nsrt_table_initialize(world.get(), -1, 42), 0);
    std::vector<std::vector<float>> tables;
    for (int t = 0; t < 4; ++t) {
      tables.push_back(world.table(t));
      EXPECT_THAT(world.state(t, 0), testing::Each(0.125f));
    }
    if (expected.empty())
      expected = tables;
    EXPECT_EQ(tables, expected) << name(kind);
  }
  // Spread over the whole interval, and different per table.
  auto [low, high] =
      std::minmax_element(expected[3].begin(), expected[3].end());
  float bound = 1 / std::sqrt(64.0f);
  EXPECT_GE(*low, -bound);
  EXPECT_LT(*high, bound);
  EXPECT_LT(*low, -0.95f * bound);
  EXPECT_GT(*high, 0.95f * bound);
  EXPECT_NE(expected[0][0], expected[3][0]);
}

TEST(Initialization, IsUniform) {
  neuroshard::TableSpec table;
  table.name = "t";
  table.rows = 1;
  TableInitializer initializer(table, 1);
  double sum = 0, squares = 0;
  constexpr int rows = 300, columns = 300;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) {
      double value = initializer.value(r, c);
      sum += value;
      squares += value * value;
    }
  constexpr double count = rows * columns;
  // Five standard errors of the mean and of the mean square.
  EXPECT_LT(std::fabs(sum / count), 5 * std::sqrt(1 / 3.0 / count));
  EXPECT_LT(std::fabs(squares / count - 1 / 3.0),
            5 * std::sqrt(4 / 45.0 / count));
}

TEST(TableAccess, RowRangesAndErrors) {
  Model model = makeModel(Optimizer::Adagrad);
  TestWorld world(model, makePlan(model, PlanKind::RowColumn, 3), 3);
  std::vector<float> values;
  for (int i = 0; i < 37 * 10; ++i)
    values.push_back(static_cast<float>(i));
  world.setTable(0, values);
  std::vector<float> part(5 * 10);
  ASSERT_EQ(nsrt_table_read(world.get(), 0, 10, 15, part.data()), 0);
  EXPECT_EQ(part,
            std::vector<float>(values.begin() + 100, values.begin() + 150));
  for (float &value : part)
    value = -value;
  ASSERT_EQ(nsrt_table_write(world.get(), 0, 10, 15, part.data()), 0);
  for (int i = 100; i < 150; ++i)
    values[static_cast<size_t>(i)] = -values[static_cast<size_t>(i)];
  EXPECT_EQ(world.table(0), values);

  std::vector<float> state(37 * 10, 2.0f);
  ASSERT_EQ(nsrt_state_write(world.get(), 0, 0, 0, 37, state.data()), 0);
  EXPECT_EQ(world.state(0, 0), state);

  EXPECT_NE(nsrt_table_read(world.get(), 0, 30, 38, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(),
               "rows [30, 38) are not in table \"user\" with 37 rows");
  EXPECT_NE(nsrt_table_read(world.get(), 4, 0, 1, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(), "there is no table 4; the artifact has 4");
  EXPECT_NE(nsrt_state_read(world.get(), 0, 1, 0, 1, part.data()), 0);
  EXPECT_STREQ(nsrt_last_error(), "table \"user\" has 1 state arrays; there is "
                                  "no state 1");
  EXPECT_EQ(nsrt_world_find_table(world.get(), "word"), 3);
  EXPECT_EQ(nsrt_world_find_table(world.get(), "words"), -1);
}

TEST(Figures, MemoryCountsPadding) {
  Model model = makeModel(Optimizer::Adam);
  TestWorld world(model, makePlan(model, PlanKind::TableWise, 1), 1);
  nsrt_device *device = nsrt_world_device(world.get(), 0);
  // Rows: 10 f32 in 48 bytes, 8 f16 in 16, 5 bf16 in 16, 12 f32 in 48.
  EXPECT_EQ(nsrt_device_memory_bytes(device, NSRT_MEMORY_WEIGHTS),
            37 * 48 + 23 * 16 + 11 * 16 + 64 * 48);
  // Two f32 arrays, rows of 12, 8, 8 and 12 values.
  EXPECT_EQ(nsrt_device_memory_bytes(device, NSRT_MEMORY_STATE),
            2 * 4 * (37 * 12 + 23 * 8 + 11 * 8 + 64 * 12));
}

TEST(Figures, PhasesAndBytes) {
  Model model = makeModel(Optimizer::None);
  model.tables = {{"t", 10, 4, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0}}}};
  std::vector<ShardPlace> shards = {{0, 0, 10, 0, 4, {1}}};
  TestWorld world(model, shards, 2);
  Oracle oracle(model);
  DataMaker maker(model, Data::Reals, 1);
  std::vector<Batch> batches = maker.batches({6});
  int64_t ids = 0;
  for (int64_t b = 0; b < 3; ++b)
    ids +=
        static_cast<int64_t>(batches[0].ids[0][static_cast<size_t>(b)].size());
  StepResult result;
  ASSERT_TRUE(world.forward(batches, result));
  nsrt_device *sender = nsrt_world_device(world.get(), 0);
  nsrt_device *owner = nsrt_world_device(world.get(), 1);
  auto phase = [](const std::string &name) {
    for (int32_t i = 0; i < nsrt_num_phases(); ++i)
      if (name == nsrt_phase_name(i))
        return i;
    return -1;
  };
  // Rank 0 sends the lengths of its 3 bags (padded to 16 bytes) and its ids,
  // rank 1 sends 3 rows of 4 floats back.
  EXPECT_EQ(nsrt_device_phase_bytes(sender, phase("ids_exchange")),
            16 + 8 * ids);
  EXPECT_EQ(nsrt_device_phase_bytes(owner, phase("ids_exchange")), 0);
  EXPECT_EQ(nsrt_device_phase_bytes(owner, phase("results_exchange")), 48);
  EXPECT_EQ(nsrt_device_phase_bytes(sender, phase("results_exchange")), 0);
  EXPECT_GT(nsrt_device_phase_ms(owner, phase("lookup")), 0);
  nsrt_device_reset_phases(owner);
  EXPECT_EQ(nsrt_device_phase_ms(owner, phase("lookup")), 0);
  EXPECT_EQ(nsrt_phase_name(nsrt_num_phases()), nullptr);
}

TEST(PartialSums, AreAddedInRankOrder) {
  Model model = makeModel(Optimizer::None);
  model.tables = {{"t", 3, 1, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0}}}};
  // By rank 1e8, -1e8, 1 (sum 1); by row 1e8, 1, -1e8 (sum 0, as 1 is lost).
  std::vector<ShardPlace> shards = {
      {0, 0, 1, 0, 1, {0}}, {0, 1, 2, 0, 1, {2}}, {0, 2, 3, 0, 1, {1}}};
  TestWorld world(model, shards, 3);
  world.setTable(0, {1e8f, 1.0f, -1e8f});
  Batch batch{1, {{{0, 1, 2}}}, {{{1, 1, 1}}}};
  StepResult result;
  ASSERT_TRUE(world.forward({batch}, result)) << world.error();
  EXPECT_EQ(result.results[0][0], std::vector<float>{1.0f});
}

} // namespace
