//===- TiersTest.cpp - Shards in files beside shards in memory ------------===//
//
// Shows that plans with shards in tier "ssd" compute the bits of the same plans
// in memory, for every optimizer, sharding, policy and size of cache, also when
// tables are read and written between steps and batches are in flight together.
// With NEUROSHARD_ALL=1 it takes 100 steps of all cases, else 6 steps of a
// sample, which NEUROSHARD_SEED names, of each optimizer and sharding.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"
#include "World/World.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

namespace neuroshard::test {
namespace {

/// The tables of makeModel with more rows, so that caches have several sets.
Model largeModel(Optimizer optimizer) {
  Model model = makeModel(optimizer);
  for (Table &table : model.tables)
    table.rows *= 40;
  return model;
}

/// Puts the shards that are on one device on disk, with caches of a share of
/// their rows.
std::vector<ShardPlace> onDisk(std::vector<ShardPlace> shards, double share,
                               CachePolicy policy) {
  for (ShardPlace &shard : shards) {
    if (shard.devices.size() > 1)
      continue;
    auto rows = static_cast<double>(shard.rowEnd - shard.rowBegin);
    auto sets = static_cast<int64_t>(std::ceil(share * rows / kCacheWays));
    shard.cache = {sets * kCacheWays, policy};
  }
  return shards;
}

int statesOf(Optimizer optimizer) {
  switch (optimizer) {
  case Optimizer::Adam:
    return 2;
  case Optimizer::Adagrad:
  case Optimizer::RowwiseAdagrad:
    return 1;
  default:
    return 0;
  }
}

struct TierCase {
  Optimizer optimizer;
  PlanKind plan;
  int devices;
  double share;
  CachePolicy policy;
  Draw draw;
  int64_t steps;
};

void expectSameAsInMemory(const TierCase &one) {
  Model model = largeModel(one.optimizer);
  std::vector<ShardPlace> shards = makePlan(model, one.plan, one.devices);
  Trial memory(model, shards, one.devices, Data::Reals, 5, 2);
  Trial disk(model, onDisk(shards, one.share, one.policy), one.devices,
             Data::Reals, 5, 2);
  memory.maker.draw = one.draw;
  bool isTrained = one.optimizer != Optimizer::None;
  int states = statesOf(one.optimizer);
  for (int64_t step = 1; step <= one.steps; ++step) {
    std::vector<Batch> batches = memory.maker.batches({61, 40});
    if (isTrained) {
      std::vector<Values> gradients =
          memory.maker.gradients(memory.oracle, batches);
      for (Trial *trial : {&memory, &disk})
        ASSERT_TRUE(
            trial->world.train(batches, gradients, 0.05F, step, trial->result))
            << trial->world.error();
    } else {
      for (Trial *trial : {&memory, &disk})
        ASSERT_TRUE(trial->world.forward(batches, trial->result))
            << trial->world.error();
    }
    ASSERT_EQ(disk.result.results, memory.result.results) << "step " << step;
    ASSERT_EQ(disk.result.weightGradients, memory.result.weightGradients);
    if (step == 3)
      for (Trial *trial : {&memory, &disk}) { // between steps
        std::vector<float> values = trial->world.table(0);
        values[5] += 1;
        trial->world.setTable(0, values);
      }
  }
  ASSERT_EQ(disk.allValues(states), memory.allValues(states));
}

/// Of each optimizer and sharding all cases, or some of them.
std::vector<TierCase> tierCases() {
  bool all = std::getenv("NEUROSHARD_ALL") != nullptr;
  const char *seed = std::getenv("NEUROSHARD_SEED");
  std::mt19937 random(seed ? std::strtoul(seed, nullptr, 10) : 7);
  std::vector<TierCase> cases;
  for (Optimizer optimizer :
       {Optimizer::None, Optimizer::Sgd, Optimizer::Adagrad,
        Optimizer::RowwiseAdagrad, Optimizer::Adam})
    for (PlanKind plan : {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
                          PlanKind::RowColumn, PlanKind::Mixed}) {
      std::vector<TierCase> some;
      for (int devices : {1, 3})
        for (double share : {0.05, 0.2, 0.5, 1.0})
          for (CachePolicy policy : {CachePolicy::Lru, CachePolicy::Lfu})
            for (Draw draw : {Draw::Uniform, Draw::Zipf})
              some.push_back({optimizer, plan, devices, share, policy, draw,
                              all ? 100 : 6});
      std::shuffle(some.begin(), some.end(), random);
      some.resize(all ? some.size() : 4);
      cases.insert(cases.end(), some.begin(), some.end());
    }
  return cases;
}

TEST(Tiers, ComputeTheSameBits) {
  for (const TierCase &one : tierCases()) {
    SCOPED_TRACE(testing::Message()
                 << "optimizer " << static_cast<int>(one.optimizer) << ", "
                 << name(one.plan) << ", " << one.devices << " devices, share "
                 << one.share << ", " << toString(one.policy) << ", rows drawn "
                 << (one.draw == Draw::Zipf ? "by Zipf" : "uniformly"));
    expectSameAsInMemory(one);
    if (testing::Test::HasFatalFailure())
      return;
  }
}

} // namespace
} // namespace neuroshard::test
