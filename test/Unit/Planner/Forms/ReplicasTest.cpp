//===- ReplicasTest.cpp - Small hot tables go everywhere when it pays -----===//

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

} // namespace
