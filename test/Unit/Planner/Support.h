//===- Support.h - Small problems for the planner's tests -------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_PLANNER_SUPPORT_H
#define NEUROSHARD_TEST_PLANNER_SUPPORT_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Model/TableFingerprint.h"

#include <string>
#include <vector>

namespace neuroshard::test {

inline constexpr int64_t kGiB = int64_t{1} << 30;
inline constexpr int64_t kMiB = int64_t{1} << 20;

/// "t7" of "t" and 7.
template <typename Number>
std::string numbered(const char *prefix, Number number) {
  std::string result = prefix;
  result += std::to_string(number);
  return result;
}

inline Table makeTable(std::string name, int64_t rows, int64_t dim,
                       OptimizerKind optimizer = OptimizerKind::SGD) {
  Table table;
  table.name = std::move(name);
  table.rows = rows;
  table.dim = dim;
  table.optimizer.kind = optimizer;
  return table;
}

/// Adds a table and one feature that reads it.
inline void addTable(ShardingProblem &problem, Table table, double pooling) {
  Feature feature;
  feature.name = table.name + "_id";
  feature.table = static_cast<int>(problem.tables.size());
  feature.meanPooling = pooling;
  problem.tables.push_back(std::move(table));
  problem.features.push_back(feature);
}

/// Tables "a" (1000 x 16) and "b" (500 x 8) on `topology`, batch 64, no
/// reserves.
inline ShardingProblem twoTables(const std::string &topology = "2xCPU@1GiB") {
  ShardingProblem problem;
  problem.batch.globalSize = 64;
  problem.topology = *parseTopology(topology);
  problem.constraints.reserves = {0, 0, 0};
  addTable(problem, makeTable("a", 1000, 16), 4);
  addTable(problem, makeTable("b", 500, 8), 1);
  return problem;
}

inline Shard makeShard(std::string name, std::string table, int64_t rowBegin,
                       int64_t rowEnd, int64_t colBegin, int64_t colEnd,
                       std::vector<int> devices) {
  Shard shard;
  shard.name = std::move(name);
  shard.table = std::move(table);
  shard.rowBegin = rowBegin;
  shard.rowEnd = rowEnd;
  shard.colBegin = colBegin;
  shard.colEnd = colEnd;
  shard.devices = std::move(devices);
  return shard;
}

/// A plan of these shards for the problem.
inline ShardingPlan makePlan(const ShardingProblem &problem,
                             std::vector<Shard> shards) {
  ShardingPlan plan;
  plan.shards = std::move(shards);
  plan.deviceCount = problem.topology.deviceCount();
  plan.optimizerSemantics = problem.optimizerSemantics;
  plan.fingerprint = tableFingerprint(problem.tables);
  return plan;
}

/// All messages on one line each, for matching.
inline std::string text(const Diagnostics &diagnostics) {
  return toString(diagnostics);
}

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_PLANNER_SUPPORT_H
