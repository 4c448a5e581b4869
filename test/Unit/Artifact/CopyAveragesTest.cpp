//===- CopyAveragesTest.cpp - Rounds in which copies are averaged ---------===//
//
// Shows that the rounds have each row of each drifting shard once, that no
// device sends more than fits into a round, that the parts of copies cover
// their rows, and that the bytes that are planned are those of the rounds.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/CopyAverages.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>

namespace neuroshard {
namespace {

/// Shards of tables of random size on random devices, the smallest of which
/// have fewer rows than copies.
ExchangePlan randomPlan(std::mt19937 &random) {
  auto below = [&](uint32_t count) {
    return static_cast<int64_t>(random() % count);
  };
  ExchangePlan plan;
  plan.numDevices = static_cast<int32_t>(2 + below(7));
  constexpr OptimizerKind kKinds[] = {
      OptimizerKind::SGD, OptimizerKind::Adagrad, OptimizerKind::RowWiseAdagrad,
      OptimizerKind::Adam};
  for (int32_t i = 0; i < 6; ++i) {
    TableSpec &table = plan.tables.emplace_back();
    table.rows = 1 + below(2) * below(400'000) + below(20);
    table.dim = 1 + below(200);
    table.elementType = below(2) ? ElementType::F32 : ElementType::F16;
    table.optimizer.emplace();
    table.optimizer->kind = kKinds[below(4)];
    ShardSpec &shard = plan.shards.emplace_back();
    shard.table = i;
    shard.rows = {0, table.rows};
    shard.cols = {0, table.dim};
    std::vector<int32_t> all(static_cast<size_t>(plan.numDevices));
    std::iota(all.begin(), all.end(), 0);
    std::ranges::shuffle(all, random);
    all.resize(static_cast<size_t>(
        2 + below(static_cast<uint32_t>(plan.numDevices) - 1)));
    std::ranges::sort(all);
    shard.devices = all;
    shard.syncEvery = 1 + below(3);
  }
  return plan;
}

TEST(CopyAverages, RoundsHaveEachRowOnce) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    SCOPED_TRACE(trial);
    ExchangePlan plan = randomPlan(random);
    std::vector<AverageRound> rounds =
        averageRounds(plan, plan.driftingCopies());
    std::map<int32_t, int64_t> next;
    std::vector<std::vector<int64_t>> sent(
        plan.shards.size(),
        std::vector<int64_t>(static_cast<size_t>(plan.numDevices)));
    for (const AverageRound &round : rounds) {
      std::vector<int64_t> bytesOf(static_cast<size_t>(plan.numDevices));
      std::vector<int> pieces(bytesOf.size());
      for (const AveragedRows &rows : round) {
        auto number = static_cast<size_t>(rows.shard);
        const ShardSpec &shard = plan.shards[number];
        EXPECT_EQ(rows.rows.begin, next[rows.shard]);
        next[rows.shard] = rows.rows.end;
        std::vector<AveragedArray> arrays = averagedArrays(plan, shard);
        int64_t last = rows.rows.begin;
        for (size_t copy = 0; copy < shard.devices.size(); ++copy) {
          Range part = rows.part(copy);
          EXPECT_EQ(part.begin, last);
          last = part.end;
          // To all a part, and to all the average of the own.
          for (size_t peer = 0; peer < shard.devices.size(); ++peer)
            sent[number][static_cast<size_t>(shard.devices[copy])] +=
                averagedBytes(arrays, part.size()) +
                averagedBytes(arrays, rows.part(peer).size());
        }
        EXPECT_EQ(last, rows.rows.end);
        for (int32_t device : shard.devices) {
          bytesOf[static_cast<size_t>(device)] +=
              averagedBytes(arrays, rows.rows.size());
          ++pieces[static_cast<size_t>(device)];
        }
      }
      for (size_t device = 0; device < bytesOf.size(); ++device)
        if (pieces[device] > 1)
          EXPECT_LE(bytesOf[device], 32 << 20);
    }
    for (size_t i = 0; i < plan.shards.size(); ++i) {
      EXPECT_EQ(next[static_cast<int32_t>(i)], plan.shards[i].rows.size());
      std::vector<int64_t> planned(sent[i].size());
      countAverage(
          plan, plan.shards[i],
          [&](size_t from, size_t, int64_t bytes) { planned[from] += bytes; });
      EXPECT_EQ(planned, sent[i]);
    }
  }
}

TEST(CopyAverages, AreDueInTheirSteps) {
  std::mt19937 random(4);
  ExchangePlan plan = randomPlan(random);
  for (int64_t step = 1; step <= 6; ++step)
    for (int32_t shard = 0; shard < static_cast<int32_t>(plan.shards.size());
         ++shard) {
      std::vector<int32_t> due =
          averagedShards(plan, plan.driftingCopies(), step);
      EXPECT_EQ(std::ranges::count(due, shard),
                step % plan.shards[static_cast<size_t>(shard)].syncEvery == 0);
    }
}

} // namespace
} // namespace neuroshard
