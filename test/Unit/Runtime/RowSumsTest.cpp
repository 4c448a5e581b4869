//===- RowSumsTest.cpp - Replicated tables updated by sums of rows --------===//
//
// Shows which tables exchange sums of rows, that these update all copies of a
// table alike, and that the updates are those of one device.
//
//===----------------------------------------------------------------------===//

#include "PhaseRecord.h"
#include "Trial.h"
#include "World/World.h"
#include "neuroshard/Artifact/ReplicaUpdate.h"
#include "neuroshard/Model/RowLayout.h"

#include <gtest/gtest.h>

namespace neuroshard::test {
namespace {

/// How replicated tables of the first exchange are updated where all ranks
/// together have these bags, and `ids` ids of each lookup.
ReplicaUpdate updateOf(const Model &model, int devices, int64_t bags,
                       int64_t ids) {
  Manifest manifest = parseManifest(writeManifest(describe(
      model, makePlan(model, PlanKind::Replicated, devices), devices)));
  const StreamSet &local = manifest.layouts[0].locals[0];
  return makeReplicaUpdate(manifest, 0, local, bags,
                           std::vector<int64_t>(local.streams.size(), ids));
}

/// 10 rows of 6 columns, looked up by two features, and 1,000 rows of 4.
Model twoTables() {
  Model model;
  model.optimizer = Optimizer::Adagrad;
  model.tables = {{"few", 10, 6, Element::F32},
                  {"many", 1000, 4, Element::F32}};
  Exchange exchange{8, false, 3, {}};
  exchange.lookups = {{0, 0}, {1, 1}, {0, 2}};
  model.exchanges = {exchange};
  return model;
}

TEST(RowSums, TravelWhereTheyTakeFewerBytes) {
  // 2 hops x 10 rows of 8 + 1 values take 720 bytes; gathered, one bag with one
  // id of two lookups 2 x (4 + 4 + 24) bytes.
  EXPECT_EQ(gatheredBytes({}, 6, 4, WireFormat::F32, 10, 10), 320);
  EXPECT_FALSE(sendsRowSums(10, 6, WireFormat::F32, 720));
  EXPECT_TRUE(sendsRowSums(10, 6, WireFormat::F32, 721));
  EXPECT_TRUE(updateOf(twoTables(), 2, 11, 11).tables.empty());

  ReplicaUpdate update = updateOf(twoTables(), 2, 12, 12);
  ASSERT_EQ(update.tables.size(), 1U);
  EXPECT_EQ(update.tables[0].table, 0);
  EXPECT_EQ(update.tables[0].stride, 8);
  EXPECT_EQ(update.tables[0].firstValue, 0);
  EXPECT_EQ(update.tables[0].firstCount, 80);
  EXPECT_EQ(update.numSums, 80 + 12);
  EXPECT_EQ(update.summed.entries, (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(update.summed.set.pooledWidth, 12);
  EXPECT_EQ(update.gathered.entries, std::vector<int32_t>{1});
  EXPECT_EQ(update.gathered.set.pooledWidth, 4);
}

TEST(RowSums, AreCutIntoSectionsOf16Bytes) {
  for (size_t ranks : {1, 2, 3, 5, 64}) {
    ReduceLevel level{std::vector<int32_t>(ranks), 0, {8, 100}};
    int64_t next = 8;
    for (size_t rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(level.section(rank).begin, next);
      EXPECT_EQ(level.section(rank).size() % 4, 0);
      next = level.section(rank).end;
    }
    EXPECT_EQ(next, 100);
  }
}

TEST(RowSums, AreReducedInGroupsAndThenOverThem) {
  ExchangePlan plan;
  plan.numDevices = 6;
  std::vector<ReduceLevel> all = reduceLevels(DeviceGroups(plan), 4, 96);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].peers, (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(all[0].ownSection(), (Range{64, 80}));
  // Whatever the order of the groups and in them.
  plan.groups = {{5, 1, 4}, {0, 3, 2}};
  std::vector<ReduceLevel> levels = reduceLevels(DeviceGroups(plan), 4, 96);
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[0].peers, (std::vector<int32_t>{1, 4, 5}));
  EXPECT_EQ(levels[0].ownSection(), (Range{32, 64}));
  EXPECT_EQ(levels[1].peers, (std::vector<int32_t>{2, 4}));
  EXPECT_EQ(levels[1].sums, (Range{32, 64}));
  EXPECT_EQ(levels[1].ownSection(), (Range{48, 64}));
}

TEST(RowSums, AreNotForFrozenTablesOrTablesOfTwoInputs) {
  Model model = twoTables();
  model.tables[0].frozen = true;
  EXPECT_TRUE(updateOf(model, 2, 50, 50).tables.empty());
  model = twoTables();
  model.exchanges.push_back({8, false, 1, {{0, 0}}});
  EXPECT_TRUE(updateOf(model, 2, 50, 50).tables.empty());
}

struct Case {
  PlanKind plan;
  int devices;
  std::vector<std::vector<int>> groups = {};
};

class RowSumsOf : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(
    All, RowSumsOf,
    testing::Values(Case{PlanKind::Replicated, 2},
                    Case{PlanKind::Replicated, 3},
                    Case{PlanKind::Replicated, 5},
                    Case{PlanKind::Replicated, 8}, Case{PlanKind::Mixed, 3},
                    Case{PlanKind::Replicated, 4, {{0, 1}, {2, 3}}},
                    Case{PlanKind::Replicated, 6, {{0, 3, 5}, {1, 2, 4}}},
                    Case{PlanKind::Mixed, 6, {{4, 5}, {0, 2}, {1, 3}}}),
    [](const auto &info) {
      return std::string(name(info.param.plan)) + "On" +
             std::to_string(info.param.devices);
    });

/// The model without its second input, so that all tables may send sums.
Model oneInput(Optimizer optimizer) {
  Model model = makeModel(optimizer);
  model.exchanges.pop_back();
  return model;
}

TEST_P(RowSumsOf, UpdateAsOneDeviceDoes) {
  for (Optimizer optimizer : {Optimizer::Sgd, Optimizer::Adagrad,
                              Optimizer::RowwiseAdagrad, Optimizer::Adam})
    for (int threads : {1, 3}) {
      Model model = oneInput(optimizer);
      for (const std::vector<int> &group : GetParam().groups)
        model.groups.push_back({group.begin(), group.end()});
      Trial both(model, makePlan(model, GetParam().plan, GetParam().devices),
                 GetParam().devices, Data::Integers, 11, threads);
      int states = optimizer == Optimizer::Adam  ? 2
                   : optimizer == Optimizer::Sgd ? 0
                                                 : 1;
      int64_t step = 1;
      // Enough for sums; for those of some tables; none; a rank without any.
      for (int64_t size : {400, 60, 1, 2}) {
        both.train({size}, 0.125f, step++);
        both.expectSameTables(states);
        // Of the next steps, dot products over column shards add in another
        // order.
        if (step == 2)
          EXPECT_EQ(both.result.weightGradients, both.expected.weightGradients);
      }
    }
}

// The totals travel beside the updates of other tables; with groups the sums
// between groups beside the sort, and the totals within them after the updates.
TEST(RowSums, TravelWhileOtherTablesAreUpdated) {
  for (bool isGrouped : {false, true}) {
    Model model = oneInput(Optimizer::Sgd);
    if (isGrouped)
      model.groups = {{0, 1}, {2, 3}};
    Trial both(model, makePlan(model, PlanKind::Mixed, 4), 4, Data::Integers,
               13);
    PhaseRecord record;
    both.train({400}, 0.125f, 1);
    both.expectSameTables();
    constexpr Phase kWait = Phase::GradientsExchange;
    std::vector<Phase> end = {Phase::Sort, Phase::Update, kWait, Phase::Update};
    if (isGrouped)
      end = {Phase::Sort, kWait, Phase::Update, kWait, kWait, Phase::Update};
    EXPECT_EQ(record.ofThreads.size(), 4U);
    for (const auto &[thread, phases] : record.ofThreads)
      EXPECT_EQ(std::vector(phases.end() - std::ssize(end), phases.end()), end);
  }
}

// The exchanges of one input's sums go on between those of the other's.
TEST(RowSums, OfTwoInputsUpdateAsOneDeviceDoes) {
  for (bool isGrouped : {false, true})
    for (Optimizer optimizer : {Optimizer::Sgd, Optimizer::RowwiseAdagrad}) {
      Model model = twoTables();
      model.optimizer = optimizer;
      model.tables.push_back({"other", 12, 4, Element::F32});
      Exchange second{8, false, 2, {}};
      second.lookups = {{2, 0}, {2, 1}};
      model.exchanges.push_back(second);
      if (isGrouped)
        model.groups = {{0, 1}, {2, 3}};
      // Table "many" is cut by columns, whose owners exchange norms.
      std::vector<ShardPlace> shards = {{1, 0, 1000, 0, 2, {0}},
                                        {1, 0, 1000, 2, 4, {3}}};
      for (int table : {0, 2}) {
        const Table &source = model.tables[static_cast<size_t>(table)];
        shards.push_back({table, 0, source.rows, 0, source.dim, {0, 1, 2, 3}});
      }
      Trial both(model, shards, 4, Data::Integers, 14);
      for (int64_t step = 1; step <= 2; ++step)
        both.train({400, 300}, 0.125f, step);
      both.expectSameTables(optimizer == Optimizer::Sgd ? 0 : 1);
    }
}

/// The bytes of a table's copy on a device.
std::vector<std::byte> bytesOf(nsrt_world *world, int device, size_t slot) {
  const runtime::Shard &shard = world->device(device)->slots[slot];
  int64_t rowBytes =
      paddedRowBytes(shard.spec().cols.size(), shard.table().elementType);
  auto *first = static_cast<const std::byte *>(shard.weights());
  return {first, first + shard.spec().rows.size() * rowBytes};
}

TEST(RowSums, KeepAllCopiesAlikeToTheBit) {
  constexpr int kDevices = 4;
  for (auto [wire, isGrouped] :
       {std::pair(WireFormat::F32, false), std::pair(WireFormat::BF16, true),
        std::pair(WireFormat::Int8, true)}) {
    Model model = oneInput(Optimizer::Adagrad);
    model.wire = wire;
    if (isGrouped)
      model.groups = {{0, 1}, {2, 3}};
    Trial both(model, makePlan(model, PlanKind::Replicated, kDevices), kDevices,
               Data::Reals, 12);
    for (int64_t step = 1; step <= 50; ++step)
      both.train({step % 5 == 0 ? 3 : 20 * step}, 0.01f, step);
    for (size_t slot = 0; slot < model.tables.size(); ++slot)
      for (int device = 1; device < kDevices; ++device)
        EXPECT_EQ(bytesOf(both.world.get(), device, slot),
                  bytesOf(both.world.get(), 0, slot));
  }
}

} // namespace
} // namespace neuroshard::test
