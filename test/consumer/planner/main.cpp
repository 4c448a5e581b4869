//===- main.cpp - Plans two tables with nothing but NeuroShard::Planner ---===//

#include "neuroshard/Planner/Search.h"
#include "neuroshard/Planner/Verify.h"

#include <cstdio>

using namespace neuroshard;

namespace {

/// One millisecond per million elements of a device's shards.
class ElementCount final : public CostModel {
public:
  std::string name() const override { return "element-count"; }

  void computeMs(std::span<const ShardSet> sets,
                 std::span<ComputeMs> out) const override {
    for (size_t i = 0; i < sets.size(); ++i)
      for (const ShardWork *shard : sets[i].shards)
        out[i].forwardMs += 1e-6 * static_cast<double>(shard->rows) *
                            static_cast<double>(shard->width);
  }

  std::vector<double> communicationMs(const Traffic &traffic,
                                      std::span<const double>,
                                      Direction) const override {
    return std::vector<double>(traffic.dims.size(), 0.0);
  }
};

/// Two equal tables, one feature each, on one node of two devices.
Expected<ShardingProblem> makeProblem() {
  ShardingProblem problem;
  for (const char *name : {"user", "item"}) {
    Table table;
    table.name = name;
    table.rows = 1000000;
    table.dim = 64;
    Feature feature;
    feature.name = name;
    feature.table = static_cast<int>(problem.tables.size());
    problem.tables.push_back(table);
    problem.features.push_back(feature);
  }
  problem.batch.globalSize = 1024;
  Expected<Topology> topology = parseTopology("2xH200");
  if (!topology)
    return tl::unexpected(topology.error());
  problem.topology = *topology;
  return problem;
}

} // namespace

int main() {
  Expected<ShardingProblem> problem = makeProblem();
  if (!problem) {
    std::fputs(toString(problem.error()).c_str(), stderr);
    return 1;
  }
  SearchOptions options;
  options.algorithm = Algorithm::Size;
  auto result = search(*problem, ElementCount(), options);
  if (!result) {
    std::fputs(result.error().str().c_str(), stderr);
    return 1;
  }

  ShardingPlan plan = result->plan;
  if (!verify(plan, *problem).empty() || plan.shards.size() != 2 ||
      plan.shards[0].devices == plan.shards[1].devices) {
    std::fputs("expected one table on each device\n", stderr);
    return 1;
  }
  plan.shards.pop_back();
  if (verify(plan, *problem).empty()) {
    std::fputs("expected a missing table to be noticed\n", stderr);
    return 1;
  }
  std::printf("%zu shards on %d devices\n", result->plan.shards.size(),
              result->plan.deviceCount);
  return 0;
}
