//===- ReplicasTest.cpp - Small hot tables go everywhere when it pays -----===//

#include "Forms/Replicas.h"
#include "Searches.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// Compute per id read and per row updated; exchanges per byte, slow forward.
class SlowForwardModel : public SumModel {
public:
  explicit SlowForwardModel(double updateMs)
      : SumModel([updateMs](const ShardWork &shard) {
          return ComputeMs{1e-4 * shard.lookups,
                           updateMs * shard.updateLookups};
        }),
        embedding(updateMs) {}
  const SumEmbedding *sumEmbedding() const override { return &embedding; }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double>,
                                      Direction direction) const override {
    std::vector<double> times;
    for (double bytes : traffic.bytesOut)
      times.push_back(direction == Direction::Forward ? 1e-3 * bytes : 0);
    return times;
  }

private:
  struct Embedding : SumEmbedding {
    explicit Embedding(double updateMs) : updateMs(updateMs) {}
    int size() const override { return 2; }
    void embed(const ShardWork &shard, const DeviceClass &,
               std::span<double> out) const override {
      out[0] = 1e-4 * shard.lookups;
      out[1] = updateMs * shard.updateLookups;
    }
    ComputeMs head(std::span<const double> sum, int,
                   const DeviceClass &) const override {
      return {sum[0], sum[1]};
    }
    double updateMs;
  };
  Embedding embedding;
};

/// One small hot table and one that takes most of the memory.
ShardingProblem hotAndLarge() {
  ShardingProblem problem;
  problem.memoryModel = MemoryModel::WeightsOnly;
  problem.batch.globalSize = 1024;
  problem.topology = *parseTopology("4xCPU@1GiB");
  addTable(problem, makeTable("hot", 1000, 64), 20);
  addTable(problem, makeTable("large", 12 << 20, 64), 1);
  return problem;
}

/// The number of devices with a replica of the table; 0: it has none.
size_t replicasOf(const ShardingProblem &problem, const CostModel &model,
                  const std::string &table,
                  ObjectiveKind kind = ObjectiveKind::Step) {
  SearchOptions options;
  options.objective.kind = kind;
  options.evaluationBudget = 5000;
  for (const Shard &shard : mustPlan(problem, model, options).plan.shards)
    if (shard.table == table && shard.hasCopies())
      return shard.devices.size();
  return 0;
}

TEST(ReplicasTest, ReplicatesWhatSavesExchanges) {
  EXPECT_EQ(replicasOf(hotAndLarge(), SlowForwardModel(1e-7), "hot"), 4u);
}

TEST(ReplicasTest, DoesNotWhenUpdatesCostMore) {
  EXPECT_EQ(replicasOf(hotAndLarge(), SlowForwardModel(1), "hot"), 0u);
}

TEST(ReplicasTest, DoesNotFillTheMemory) {
  EXPECT_EQ(replicasOf(hotAndLarge(), SlowForwardModel(1e-7), "large"), 0u);
}

TEST(ReplicasTest, ModelsOfOneNumberGetNoneUnasked) {
  ShardingProblem problem = hotAndLarge();
  EXPECT_EQ(replicasOf(problem, *makeReferenceModel(), "hot",
                       ObjectiveKind::Published),
            0u);
  problem.constraints.tables = {{0, {ShardingKind::Replicated}, 1}};
  EXPECT_EQ(replicasOf(problem, *makeReferenceModel(), "hot",
                       ObjectiveKind::Published),
            4u);
}

/// One table a device, each of so many rows: the average device is every one.
ShardingProblem evenTables(int64_t rows) {
  ShardingProblem problem;
  problem.batch.globalSize = 4096;
  problem.topology = *parseTopology("2x2xCPU@1gbit");
  for (const char *name : {"a", "b", "c", "d"})
    addTable(problem, makeTable(name, rows, 64), 1);
  return problem;
}

// Sums of rows go within groups first, and beside updates.
TEST(ReplicasTest, AreChosenByThePriceOfTheirSums) {
  std::unique_ptr<CostModel> model = makeRooflineModel();
  SearchOptions options;
  int copied = 0, whole = 0;
  for (int64_t rows = 400; rows <= 12'800; rows *= 2) {
    SCOPED_TRACE(rows);
    ShardingProblem problem = evenTables(rows);
    SearchContext context(problem, *model, options);
    ShardingPlan each, all;
    each.deviceCount = all.deviceCount = 4;
    std::vector<UnitPtr> units;
    for (int i = 0; i < 4; ++i) {
      const std::string &name = problem.tables[static_cast<size_t>(i)].name;
      each.shards.push_back(makeShard(name, name, 0, rows, 0, 64, {i}));
      all.shards.push_back(makeShard(name, name, 0, rows, 0, 64, {0, 1, 2, 3}));
      Shard unplaced = each.shards.back();
      unplaced.devices.clear();
      units.push_back(makeUnit(context, {unplaced}));
    }
    double ratio = evaluate(problem, all, *model, {}).costMs /
                   evaluate(problem, each, *model, {}).costMs;
    auto replicas = std::ranges::count_if(
        withReplicas(context, units), [](const UnitPtr &unit) {
          return unit->forcedDevice == Unit::kEverywhere;
        });
    copied += ratio < 0.95;
    whole += ratio > 1.05;
    if (ratio < 0.95)
      EXPECT_EQ(replicas, 4) << ratio;
    if (ratio > 1.05)
      EXPECT_EQ(replicas, 0) << ratio;
  }
  EXPECT_GE(copied, 2);
  EXPECT_GE(whole, 1);
}

} // namespace
