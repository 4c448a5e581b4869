//===- Searches.h - Cost models and searches of the tests -------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_PLANNER_SEARCHES_H
#define NEUROSHARD_TEST_PLANNER_SEARCHES_H

#include "Support.h"
#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"
#include "neuroshard/Serialization/Json.h"

#include <functional>
#include <gtest/gtest.h>
#include <memory>

namespace neuroshard::test {

/// DLRM-v2 with 8,192 samples a device.
inline ShardingProblem dlrm(const std::string &topology) {
  ShardingProblem problem = *readWorkload(std::string(NEUROSHARD_SOURCE_DIR) +
                                          "/workloads/mlperf_dlrm_v2.json");
  problem.topology = *parseTopology(topology);
  problem.batch.globalSize = 8192 * problem.topology.deviceCount();
  return problem;
}

/// A device's compute is the sum over its shards; exchanges cost nothing.
class SumModel : public CostModel {
public:
  using ShardMs = std::function<ComputeMs(const ShardWork &)>;
  explicit SumModel(ShardMs shardMs) : shardMs(std::move(shardMs)) {}
  std::string name() const override { return "sum"; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    for (size_t i = 0; i < sets.size(); ++i) {
      out[i] = {};
      for (const ShardWork *shard : sets[i].shards) {
        ComputeMs one = shardMs(*shard);
        out[i].forwardMs += one.forwardMs;
        out[i].backwardMs += one.backwardMs;
      }
    }
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double>,
                                      Direction) const override {
    return std::vector<double>(traffic.dims.size());
  }

private:
  const ShardMs shardMs;
};

/// A model without its SumEmbedding.
class SetsOnly : public CostModel {
public:
  explicit SetsOnly(std::unique_ptr<CostModel> model)
      : model(std::move(model)) {}
  std::string name() const override { return "sets only"; }
  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    model->computeMs(sets, out);
  }
  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double> skews,
                                      Direction direction) const override {
    return model->communicationMs(traffic, skews, direction);
  }

private:
  std::unique_ptr<CostModel> model;
};

/// Searches and verifies; fails the test if there is no plan.
inline SearchResult mustPlan(const ShardingProblem &problem,
                             const CostModel &model,
                             const SearchOptions &options = {}) {
  auto result = search(problem, model, options);
  if (!result) {
    ADD_FAILURE() << result.error().str();
    return {};
  }
  EXPECT_EQ(text(verify(result->plan, problem)), "");
  return *result;
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_PLANNER_SEARCHES_H
