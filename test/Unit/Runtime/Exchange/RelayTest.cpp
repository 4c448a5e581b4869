//===- RelayTest.cpp - Hierarchical all-to-all ----------------------------===//
//
// Shows that exchanges over relays compute the same as direct ones, in which
// order they add and when they round, and that they send one row to other
// groups where direct exchanges send one per owner.
//
//===----------------------------------------------------------------------===//

#include "Device/Device.h"
#include "RandomSteps.h"
#include "RankGroups.h"
#include "Trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <utility>

using namespace neuroshard::test;
using neuroshard::Phase;
using neuroshard::WireFormat;
using neuroshard::WireType;
using testing::StartsWith;

namespace {

const RankGroups kTwoFours = {{0, 1, 2, 3}, {4, 5, 6, 7}};
const RankGroups kFourPairs = {{0, 1}, {2, 3}, {4, 5}, {6, 7}};

/// So many ranks that headers of ids go by relay, too.
RankGroups eightFours() {
  RankGroups groups(8, std::vector<int>(4));
  for (int device = 0; device < 32; ++device)
    groups[static_cast<size_t>(device / 4)][static_cast<size_t>(device % 4)] =
        device;
  return groups;
}

int devicesIn(const RankGroups &groups) {
  return static_cast<int>(groups.size() * groups[0].size());
}

struct RelayCase {
  const char *name;
  RankGroups groups;
  PlanKind plan;
};

/// For messages of gtest, which else show the bytes of the pointer.
void PrintTo(const RelayCase &test, std::ostream *os) {
  *os << name(test.plan) << " in " << test.name;
}

std::vector<RelayCase> relayCases() {
  std::vector<RelayCase> cases;
  for (PlanKind plan : {PlanKind::TableWise, PlanKind::Column, PlanKind::Row,
                        PlanKind::RowColumn, PlanKind::Mixed}) {
    cases.push_back({"TwoPairs", kTwoPairs, plan});
    cases.push_back({"MixedPairs", kMixedPairs, plan});
    cases.push_back({"TwoFours", kTwoFours, plan});
    cases.push_back({"FourPairs", kFourPairs, plan});
    cases.push_back({"EightFours", eightFours(), plan});
  }
  return cases;
}

class Relays : public testing::TestWithParam<RelayCase> {
protected:
  Model model(Optimizer optimizer, WireType wire = {}) const {
    Model result = makeModel(optimizer);
    result.groups = GetParam().groups;
    result.wire = wire;
    return result;
  }
  int devices() const { return devicesIn(GetParam().groups); }
  std::vector<ShardPlace> plan(const Model &model) const {
    return makePlan(model, GetParam().plan, devices());
  }
  Trial trial(const Model &model, Data data, unsigned seed,
              int threads = 1) const {
    return Trial(model, plan(model), devices(), data, seed, threads);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Relays, testing::ValuesIn(relayCases()),
                         [](const auto &info) {
                           return std::string(name(info.param.plan)) + "In" +
                                  info.param.name;
                         });

// Uneven batches, fewer bags than devices, and none at all.
const std::vector<std::vector<int64_t>> kRelayBatchSizes = {
    {13, 7}, {1, 1}, {3, 0}};

TEST_P(Relays, ForwardIsBitwiseOnIntegers) {
  for (WireType wire : {WireType(), WireType(WireFormat::F16),
                        WireType(WireFormat::F16, WireFormat::F32)}) {
    Trial both = trial(model(Optimizer::None, wire), Data::Integers, 1);
    for (const auto &sizes : kRelayBatchSizes)
      both.expectSameForward(sizes);
  }
}

TEST_P(Relays, TrainingIsBitwise) {
  for (Optimizer optimizer : {Optimizer::Sgd, Optimizer::Adagrad,
                              Optimizer::RowwiseAdagrad, Optimizer::Adam}) {
    WireType wire;
    if (optimizer == Optimizer::Adam)
      wire = WireFormat::BF16;
    if (optimizer == Optimizer::Adagrad)
      wire.gradients = WireFormat::F16;
    Model grouped = model(optimizer, wire);
    grouped.initialAccumulator = optimizer == Optimizer::Adam ? 0 : 0.5f;
    // Integers: norms over column shards add in another order.
    bool rowwise = optimizer == Optimizer::RowwiseAdagrad;
    Trial both = trial(grouped, rowwise ? Data::Integers : Data::Reals, 2);
    int64_t step = 1;
    for (const auto &sizes : kRelayBatchSizes) {
      both.train(sizes, 0.125f, step++);
      both.expectSameTables();
      if (rowwise)
        break; // later values are no integers any more
    }
  }
}

TEST_P(Relays, ThreadsDoNotChangeABit) {
  std::vector<std::vector<float>> first;
  for (int threads : {1, 3}) {
    Trial both =
        trial(model(Optimizer::Sgd, WireFormat::F16), Data::Reals, 3, threads);
    both.train({1200, 700}, 0.5f, 1);
    if (first.empty())
      first = both.allValues();
    EXPECT_EQ(both.allValues(), first);
  }
}

/// Cuts the rows of each table over the devices of one group; tables take the
/// groups in turn.
std::vector<ShardPlace> rowsInsideGroups(const Model &model) {
  std::vector<ShardPlace> shards;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const std::vector<int> &group = model.groups[t % model.groups.size()];
    auto count = static_cast<int64_t>(group.size());
    const Table &table = model.tables[t];
    for (int64_t i = 0; i < count; ++i)
      shards.push_back({static_cast<int>(t),
                        table.rows * i / count,
                        table.rows * (i + 1) / count,
                        0,
                        table.dim,
                        {group[static_cast<size_t>(i)]}});
  }
  return shards;
}

TEST(RelayedRows, InsideOneGroupHaveTheBitsOfADirectExchange) {
  for (const RankGroups &groups : {kTwoPairs, kTwoFours, kFourPairs}) {
    Model grouped = makeModel(Optimizer::Adagrad);
    grouped.groups = groups;
    Model direct = grouped;
    direct.groups.clear();
    std::vector<ShardPlace> shards = rowsInsideGroups(grouped);
    TestWorld worlds[] = {{grouped, shards, devicesIn(groups)},
                          {direct, shards, devicesIn(groups)}};
    StepResult results[2];
    for (int i : {0, 1}) {
      Oracle oracle(direct);
      DataMaker maker(direct, Data::Reals, 4);
      maker.fillTables(oracle, worlds[i]);
      std::vector<Batch> batches = maker.batches({29, 17});
      std::vector<Values> gradients = maker.gradients(oracle, batches);
      ASSERT_TRUE(worlds[i].train(batches, gradients, 0.125f, 1, results[i]));
    }
    EXPECT_EQ(results[0].results, results[1].results);
    EXPECT_EQ(results[0].weightGradients, results[1].weightGradients);
    for (int t = 0; t < static_cast<int>(direct.tables.size()); ++t)
      EXPECT_EQ(worlds[0].table(t), worlds[1].table(t));
  }
}

/// A table with one column, and one row on each device.
struct RowPerDevice {
  RowPerDevice(const std::vector<float> &values, RankGroups groups,
               WireType wire)
      : model{{{"t", static_cast<int64_t>(values.size()), 1, Element::F32}},
              {{8, false, 1, {{0, 0}}}},
              Optimizer::Sgd,
              0,
              true,
              wire,
              std::move(groups)},
        world(model, placesOf(static_cast<int>(values.size())),
              static_cast<int>(values.size())) {
    world.setTable(0, values);
  }

  static std::vector<ShardPlace> placesOf(int devices) {
    std::vector<ShardPlace> places;
    for (int d = 0; d < devices; ++d)
      places.push_back({0, d, d + 1, 0, 1, {d}});
    return places;
  }

  Batch batchOf(const std::vector<std::vector<int64_t>> &bags) {
    return {static_cast<int64_t>(bags.size()), {bags}, {{}}};
  }

  /// The sum of all rows, for each rank.
  std::vector<float> sums() {
    StepResult result;
    std::vector<int64_t> all(static_cast<size_t>(model.tables[0].rows));
    std::iota(all.begin(), all.end(), 0);
    std::vector<std::vector<int64_t>> bags(all.size(), all);
    EXPECT_TRUE(world.forward({batchOf(bags)}, result)) << world.error();
    return result.results[0][0];
  }

  Model model;
  TestWorld world;
};

TEST(RelayedRows, AddInsideGroupsFirst) {
  // In f32, 2^25 + 1 is 2^25, and so are its sums from the left with more 1.
  const float big = 0x1p25f;
  auto all = [](float value) { return std::vector<float>(4, value); };
  EXPECT_EQ(RowPerDevice({big, 1, 2, 2}, {}, WireFormat::F32).sums(), all(big));
  EXPECT_EQ(RowPerDevice({big, 1, 2, 2}, kTwoPairs, WireFormat::F32).sums(),
            all(big + 4)); // (big + 1) + (2 + 2)
  EXPECT_EQ(
      RowPerDevice({2, big, 1, 2}, {{0, 3}, {1, 2}}, WireFormat::F32).sums(),
      all(big + 4)); // (2 + 2) + (big + 1)
}

TEST(RelayedRows, AddGroupsInTheirOrder) {
  const float big = 0x1p24f; // + 1 is the same
  const std::vector<float> values = {big, 0, 1, 0, 0, 1};
  EXPECT_EQ(
      RowPerDevice(values, {{0, 1}, {2, 3}, {4, 5}}, WireFormat::F32).sums(),
      std::vector<float>(6, big)); // (big + 1) + 1
  EXPECT_EQ(
      RowPerDevice(values, {{4, 5}, {2, 3}, {0, 1}}, WireFormat::F32).sums(),
      std::vector<float>(6, big + 2)); // (1 + 1) + big
}

TEST(RelayedRows, AreRoundedOnEachHop) {
  // As f16: 2051 becomes 2052, as a tie; 2052 + 1 becomes 2052; + 0.25 stays.
  EXPECT_EQ(RowPerDevice({2051, 1, 0.125f, 0.125f}, kTwoPairs, WireFormat::F16)
                .sums(),
            std::vector<float>(4, 2052.25f));
  // 4099 of the gradient becomes 4100 once; a row gets it from every rank.
  RowPerDevice rows({0, 1, 2, 3}, kTwoPairs, WireFormat::F16);
  StepResult result;
  std::vector<int64_t> all = {0, 1, 2, 3};
  ASSERT_TRUE(rows.world.train({rows.batchOf({all, all, all, all})},
                               {{{4099, 1, 1, 4099}}}, 1, 1, result));
  EXPECT_EQ(rows.world.table(0),
            (std::vector<float>{-8202, -8201, -8200, -8199}));
}

TEST(RelayedRows, AreRoundedInTheTypeOfTheirDirection) {
  // As f16, 2051 becomes 2052.
  std::vector<float> values = {2051, 2, 0.125f, 0.125f};
  WireType coarseResults(WireFormat::F16, WireFormat::F32);
  WireType coarseGradients(WireFormat::F32, WireFormat::F16);
  EXPECT_EQ(RowPerDevice(values, kTwoPairs, coarseResults).sums(),
            std::vector<float>(4, 2054.25f));
  EXPECT_EQ(RowPerDevice(values, kTwoPairs, coarseGradients).sums(),
            std::vector<float>(4, 2053.25f));
  std::vector<int64_t> all = {0, 1, 2, 3};
  for (bool coarse : {false, true}) {
    RowPerDevice rows({0, 1, 2, 3}, kTwoPairs,
                      coarse ? coarseGradients : coarseResults);
    StepResult result;
    ASSERT_TRUE(rows.world.train({rows.batchOf({all, all, all, all})},
                                 {{{4099, 1, 1, 4099}}}, 1, 1, result));
    float sum = coarse ? 8202 : 8200;
    EXPECT_EQ(rows.world.table(0),
              (std::vector<float>{-sum, 1 - sum, 2 - sum, 3 - sum}));
  }
}

/// Bytes between groups in a phase of one training step.
int64_t bytesBetweenGroups(TestWorld &world, const std::vector<Batch> &batches,
                           const std::vector<Values> &gradients, Phase phase) {
  int64_t bytes = 0;
  int32_t devices = nsrt_world_num_devices(world.get());
  for (int32_t rank = 0; rank < devices; ++rank)
    nsrt_device_reset_phases(nsrt_world_device(world.get(), rank));
  StepResult result;
  EXPECT_TRUE(world.train(batches, gradients, 1, 1, result)) << world.error();
  for (int32_t rank = 0; rank < devices; ++rank)
    bytes += nsrt_world_device(world.get(), rank)
                 ->figures.leftGroupBytes[static_cast<size_t>(phase)];
  return bytes;
}

TEST(RelayedBytes, AreOneRowPerBagAndGroupThatHasNotTheBag) {
  // Rows of the first table on all devices of group 0, of the second on all
  // devices; a third table is not split.
  Model model = makeModel(Optimizer::Sgd);
  model.tables = {{"inside", 16, 8, Element::F32},
                  {"across", 16, 4, Element::F32},
                  {"whole", 16, 2, Element::F32}};
  model.exchanges = {{8, false, 1, {{0, 0, Pool::Mean}, {1, 0}, {2, 0}}}};
  std::vector<ShardPlace> shards = {{2, 0, 16, 0, 2, {5}}};
  for (int d = 0; d < 4; ++d)
    shards.push_back({0, 4 * d, 4 * d + 4, 0, 8, {d}});
  for (int d = 0; d < 8; ++d)
    shards.push_back({1, 2 * d, 2 * d + 2, 0, 4, {d}});
  Model grouped = model;
  grouped.groups = kTwoFours;
  for (WireType wire : {WireType(), WireType(WireFormat::BF16),
                        WireType(WireFormat::F32, WireFormat::BF16)}) {
    grouped.wire = wire;
    Trial both(grouped, shards, 8, Data::Integers, 5);
    std::vector<Batch> batches = both.maker.batches({19}); // 11 in group 0
    std::vector<Values> gradients = both.maker.gradients(both.oracle, batches);
    // Group 0 sends 8 + 4 columns for 8 bags, group 1 4 + 2 for 11. Directly
    // it would be 4 times as much, but for the 2.
    int64_t values = 8 * (8 + 4) + 11 * (4 + 2);
    for (auto [phase, type] :
         {std::pair(Phase::ResultsExchange, wire.results),
          std::pair(Phase::GradientsExchange, wire.gradients)})
      EXPECT_EQ(bytesBetweenGroups(both.world, batches, gradients, phase),
                values * (type == WireFormat::F32 ? 4 : 2));
  }
}

/// The handles of a lookup.
struct Handles {
  nsrt_routed *routed = nullptr;
  nsrt_partials *partials = nullptr;

  void release(nsrt_device *device) {
    nsrt_partials_release(device, std::exchange(partials, nullptr));
    nsrt_routed_release(device, std::exchange(routed, nullptr));
  }
};
Handles keptHandles;

/// Rank 2 runs the first stage only, and keeps its handles or drops them.
void startOnly(nsrt_device *device, bool keeps) {
  static const int64_t ids[] = {1};
  static const int64_t offsets[] = {0, 1};
  float result = 0;
  Handles handles;
  handles.routed = nsrt_route(device, 0, ids, 1, offsets, 2, nullptr);
  handles.partials = nsrt_lookup(device, handles.routed);
  nsrt_results_start(device, handles.routed, handles.partials);
  if (nsrt_device_rank(device) == 2 && keeps) {
    keptHandles = handles;
    return;
  }
  if (nsrt_device_rank(device) != 2) {
    nsrt_result_wait(device, handles.routed, handles.partials, 0, 0, &result);
    EXPECT_EQ(result, keeps ? result : 2); // row 1
  }
  handles.release(device);
}
void startAndKeep(void **args) {
  startOnly(static_cast<nsrt_device *>(args[0]), true);
}
void startAndDrop(void **args) {
  startOnly(static_cast<nsrt_device *>(args[0]), false);
}

/// The status of a function on all four ranks.
int32_t invoke(RowPerDevice &rows, nsrt_host_function function) {
  std::vector<std::vector<void *>> args;
  std::vector<void **> pointers;
  for (int rank = 0; rank < 4; ++rank) {
    nsrt_world_register(rows.world.get(), rank, "leave", function);
    args.push_back({nsrt_world_device(rows.world.get(), rank)});
  }
  for (auto &list : args)
    pointers.push_back(list.data());
  return nsrt_invoke_all(rows.world.get(), "leave", pointers.data());
}

TEST(RelayedRows, RankThatMissesTheSecondHopIsNamed) {
  RowPerDevice rows({1, 2, 3, 4}, kTwoPairs, WireFormat::F32);
  EXPECT_NE(invoke(rows, startAndKeep), 0);
  EXPECT_THAT(nsrt_last_error(), StartsWith("rank 2: left the step before"));
  keptHandles.release(nsrt_world_device(rows.world.get(), 2));
  EXPECT_EQ(rows.sums(), std::vector<float>(4, 10));
}

TEST(RelayedRows, RankThatDropsItsResultsRelaysThoseOfOthers) {
  RowPerDevice rows({1, 2, 3, 4}, kTwoPairs, WireFormat::F32);
  EXPECT_EQ(invoke(rows, startAndDrop), 0) << nsrt_last_error();
  EXPECT_EQ(rows.sums(), std::vector<float>(4, 10));
}

} // namespace
