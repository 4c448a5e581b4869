//===- ReplicasTest.cpp - Small hot tables go everywhere when it pays -----===//

#include "Support.h"
#include "neuroshard/CostModel/ReferenceClosedForm.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace neuroshard;
using namespace neuroshard::test;

namespace {

/// Compute per id read and per row updated; exchanges per byte, slow forward.
class SlowForwardModel : public CostModel {
public:
  explicit SlowForwardModel(double updateMs) : embedding(updateMs) {}
  std::string name() const override { return "slow-forward"; }
  const SumEmbedding *sumEmbedding() const override { return &embedding; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    for (size_t i = 0; i < sets.size(); ++i) {
      out[i] = {};
      for (const ShardWork *shard : sets[i].shards) {
        out[i].forwardMs += 1e-4 * shard->lookups;
        out[i].backwardMs += embedding.updateMs * shard->updateLookups;
      }
    }
  }
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
  auto result = search(problem, model, options);
  if (!result) {
    ADD_FAILURE() << result.error().str();
    return 0;
  }
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  for (const Shard &shard : result->plan.shards)
    if (shard.table == table && shard.replicated())
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
