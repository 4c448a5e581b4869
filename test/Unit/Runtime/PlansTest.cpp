//===- PlansTest.cpp - Every way to shard computes the same ---------------===//
//
// Shows that forward, weight gradients and optimizer steps on 1 to 8 devices
// equal a naive computation on one, for every kind of sharding.
//
//===----------------------------------------------------------------------===//

#include "Trial.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace neuroshard::test;

namespace {

struct Case {
  PlanKind plan;
  int devices;
};

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (int devices : {1, 2, 4, 8})
    for (PlanKind plan :
         {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
          PlanKind::RowColumn, PlanKind::Replicated, PlanKind::Mixed})
      cases.push_back({plan, devices});
  return cases;
}

class Plans : public testing::TestWithParam<Case> {
protected:
  std::vector<ShardPlace> plan(const Model &model) const {
    return makePlan(model, GetParam().plan, GetParam().devices);
  }
  Trial trial(const Model &model, Data data, unsigned seed,
              int threads = 1) const {
    return Trial(model, plan(model), GetParam().devices, data, seed, threads);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Plans, testing::ValuesIn(allCases()),
                         [](const auto &info) {
                           return std::string(name(info.param.plan)) + "On" +
                                  std::to_string(info.param.devices);
                         });

// Sizes of the two inputs: not divisible by the devices, a single bag, fewer
// bags than devices.
const std::vector<std::vector<int64_t>> kBatchSizes = {{13, 7}, {1, 1}, {3, 0}};

TEST_P(Plans, ForwardIsBitwiseOnIntegers) {
  Trial both = trial(makeModel(Optimizer::None), Data::Integers, 1);
  for (const auto &sizes : kBatchSizes)
    both.expectSameForward(sizes);
}

TEST_P(Plans, ForwardOnReals) {
  Model model = makeModel(Optimizer::None);
  Trial both = trial(model, Data::Reals, 2);
  std::vector<Batch> batches = both.maker.batches({29, 17});
  StepResult result;
  ASSERT_TRUE(both.world.forward(batches, result)) << both.world.error();
  StepResult expected = both.oracle.forward(batches);
  if (!splitsRows(GetParam().plan)) {
    EXPECT_EQ(result.results, expected.results);
    return;
  }
  // Row shards add in another order: within 4 units in the last place of the
  // sum of magnitudes.
  std::vector<Values> magnitudes = both.oracle.magnitudes(batches);
  for (size_t x = 0; x < batches.size(); ++x)
    for (size_t k = 0; k < expected.results[x].size(); ++k) {
      Element type = model.exchanges[x].lookups[k].result;
      float unit = type == Element::F32   ? 0x1p-23f
                   : type == Element::F16 ? 0x1p-10f
                                          : 0x1p-7f;
      ASSERT_EQ(result.results[x][k].size(), expected.results[x][k].size());
      for (size_t i = 0; i < expected.results[x][k].size(); ++i)
        EXPECT_LE(
            std::fabs(result.results[x][k][i] - expected.results[x][k][i]),
            4 * unit * magnitudes[x][k][i]);
    }
}

TEST_P(Plans, UpdatesAreBitwiseForElementwiseOptimizers) {
  for (Optimizer optimizer :
       {Optimizer::Sgd, Optimizer::Adagrad, Optimizer::Adam}) {
    Model model = makeModel(optimizer);
    if (optimizer == Optimizer::Adagrad)
      model.initialAccumulator = 0.5f;
    Trial both = trial(model, Data::Reals, 3);
    int states = optimizer == Optimizer::Adam  ? 2
                 : optimizer == Optimizer::Sgd ? 0
                                               : 1;
    int64_t step = 1;
    for (const auto &sizes : kBatchSizes) {
      both.train(sizes, 0.125f, step++);
      both.expectSameTables(states);
    }
  }
}

TEST_P(Plans, WeightGradientsAreBitwiseOnIntegers) {
  // Not on reals: a dot product over column shards adds in another order.
  Trial both = trial(makeModel(Optimizer::Sgd), Data::Integers, 4);
  both.train({13, 7}, 1, 1);
  EXPECT_EQ(both.result.weightGradients[0], both.expected.weightGradients[0]);
}

TEST_P(Plans, ExactRowwiseAdagradIsOneOptimizerOverColumnShards) {
  Model model = makeModel(Optimizer::RowwiseAdagrad);
  model.initialAccumulator = 0.25f;
  // Integers: norms over column shards add in another order.
  Trial both = trial(model, Data::Integers, 5);
  std::vector<Batch> batches = both.maker.batches({13, 7});
  std::vector<Values> gradients = both.maker.gradients(both.oracle, batches);
  for (int step = 1; step <= 3; ++step) {
    both.train(batches, gradients, 0.125f, step);
    both.expectSameTables(1);
  }
}

TEST_P(Plans, ThreadsDoNotChangeABit) {
  std::vector<std::vector<float>> first;
  for (int threads : {1, 2, 5}) {
    Trial both = trial(makeModel(Optimizer::Adam), Data::Reals, 6, threads);
    both.train({3000, 2000}, 0.5f, 1); // several chunks per lookup
    if (first.empty())
      first = both.allValues(1);
    EXPECT_EQ(both.allValues(1), first) << threads << " threads";
  }
}

/// A lookup whose results are asked for later.
struct LateResult {
  nsrt_routed *routed = nullptr;
  nsrt_partials *partials = nullptr;
  std::vector<float> result = std::vector<float>(4, -1);
  static constexpr int64_t ids[] = {1, 2};
  static constexpr int64_t offsets[] = {0, 2};
};

void startLate(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &late = *static_cast<LateResult *>(args[1]);
  late.routed = nsrt_route(device, 0, late.ids, 2, late.offsets, 2, nullptr);
  late.partials = nsrt_lookup(device, late.routed);
  nsrt_results_start(device, late.routed, late.partials);
}

void updateLate(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &late = *static_cast<LateResult *>(args[1]);
  static const float gradient[] = {1, 1, 1, 1};
  const int32_t type = 0;
  const void *first = gradient;
  const int64_t stride = 4;
  nsrt_partials *gradients =
      nsrt_gradients_pack(device, late.routed, 1, &type, &first, &stride, 0);
  nsrt_gradients_start(device, late.routed, gradients);
  nsrt_update(device, 1, &late.routed, &gradients, 1.0f, 1);
  nsrt_partials_release(device, gradients);
}

void waitLate(void **args) {
  auto *device = static_cast<nsrt_device *>(args[0]);
  auto &late = *static_cast<LateResult *>(args[1]);
  nsrt_result_wait(device, late.routed, late.partials, 0, 0,
                   late.result.data());
  nsrt_partials_release(device, late.partials);
  nsrt_routed_release(device, late.routed);
}

TEST(LateResults, AreThoseOfTheWeightsAtTheLookup) {
  Model model = makeModel(Optimizer::Sgd);
  model.tables = {{"t", 4, 4, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0}}}};
  for (int devices : {1, 2}) {
    std::vector<ShardPlace> shards = {{0, 0, 4, 0, 4, {devices - 1}}};
    TestWorld world(model, shards, devices);
    std::vector<LateResult> late(static_cast<size_t>(devices));
    std::vector<std::vector<void *>> args;
    std::vector<void **> pointers;
    for (int rank = 0; rank < devices; ++rank) {
      args.push_back({nsrt_world_device(world.get(), rank), &late[rank]});
      nsrt_world_register(world.get(), rank, "start", startLate);
      nsrt_world_register(world.get(), rank, "update", updateLate);
      nsrt_world_register(world.get(), rank, "wait", waitLate);
    }
    for (auto &list : args)
      pointers.push_back(list.data());
    auto invoke = [&](const char *name) {
      ASSERT_EQ(nsrt_invoke_all(world.get(), name, pointers.data()), 0)
          << nsrt_last_error();
    };
    const std::vector<float> table = {0, 1, 2,  3,  4,  5,  6,  7,
                                      8, 9, 10, 11, 12, 13, 14, 15};
    const std::vector<float> sum = {12, 14, 16, 18}; // rows 1 and 2
    world.setTable(0, table);
    invoke("start");
    invoke("update");
    invoke("wait");
    EXPECT_EQ(late[0].result, sum) << devices;
    EXPECT_EQ(world.table(0)[4],
              4.0f - static_cast<float>(devices)); // one bag per device
    world.setTable(0, table);
    invoke("start");
    world.setTable(0, std::vector<float>(16, 100));
    invoke("wait");
    EXPECT_EQ(late[0].result, sum) << devices;
  }
}

TEST_P(Plans, TablesWithoutAnOptimizerStay) {
  Model model = makeModel(Optimizer::Adagrad);
  model.tables[0].frozen = true;
  model.tables[3].frozen = true;
  Trial both = trial(model, Data::Integers, 8);
  std::vector<float> before = both.world.table(3);
  both.train({13, 7}, 1, 1);
  EXPECT_EQ(both.result.weightGradients[0], both.expected.weightGradients[0]);
  both.expectSameTables();
  EXPECT_EQ(both.world.table(3), before);
}

TEST(PerShardSemantics, KeepsOneStatePerColumnShard) {
  Model model = makeModel(Optimizer::RowwiseAdagrad);
  model.exact = false;
  model.tables = {{"wide", 20, 12, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0}}}};
  std::vector<ShardPlace> shards = {
      {0, 0, 20, 0, 4, {1}}, {0, 0, 20, 4, 8, {0}}, {0, 0, 20, 8, 12, {1}}};
  Trial both(model, shards, 2, Data::Reals, 7, 1, {0, 4, 8});
  std::vector<Batch> batches = both.maker.batches({11});
  std::vector<Values> gradients = both.maker.gradients(both.oracle, batches);
  for (int step = 1; step <= 2; ++step) {
    both.train(batches, gradients, 0.125f, step);
  }
  both.expectSameTables(1);
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
