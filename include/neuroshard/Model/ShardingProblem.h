//===- ShardingProblem.h - Input of the planner -----------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARDINGPROBLEM_H
#define NEUROSHARD_MODEL_SHARDINGPROBLEM_H

#include "neuroshard/Model/Batch.h"
#include "neuroshard/Model/Constraints.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/Feature.h"
#include "neuroshard/Model/Optimizer.h"
#include "neuroshard/Model/RowLayout.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/Table.h"
#include "neuroshard/Model/Target.h"
#include "neuroshard/Model/Topology.h"
#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Full: every term of docs/memory.md. WeightsOnly: rows x width x bytes, as
/// in the published tasks.
enum class MemoryModel { Full, WeightsOnly };

std::string_view toString(MemoryModel model);
std::optional<MemoryModel> parseMemoryModel(std::string_view text);

/// What a step does. Training: lookups, gradients and updates. Inference:
/// lookups alone, of tables that are served.
enum class StepMode { Training, Inference };

std::string_view toString(StepMode mode);
std::optional<StepMode> parseStepMode(std::string_view text);

/// Statistics of a feature in one period; see Feature.
struct FeatureStatistics {
  /// Index into ShardingProblem::features.
  int feature = 0;
  double meanPooling = 1;
  double p99Pooling = 0;
  double presence = 1;

  bool operator==(const FeatureStatistics &) const = default;
};

/// How the ids of a table repeat in one period.
struct TableStatistics {
  /// Index into ShardingProblem::tables.
  int table = 0;
  AccessStatistics access;

  bool operator==(const TableStatistics &) const = default;
};

/// Statistics of one period (a day, the peak hour). Features and tables that it
/// does not list keep those of the problem.
struct Snapshot {
  std::string name;
  /// Above 0; how much the period counts, relative to the other snapshots.
  double weight = 1;
  std::vector<FeatureStatistics> features;
  std::vector<TableStatistics> tables;

  bool operator==(const Snapshot &) const = default;
};

struct ShardingProblem {
  /// Where the workload comes from; for people.
  std::string source;
  std::vector<Table> tables;
  std::vector<Feature> features;
  /// If there are any, a plan's cost is the weighted mean of its costs under
  /// each, and its memory must suffice for each feature's largest p99 pooling.
  std::vector<Snapshot> snapshots;
  Batch batch;
  Topology topology;
  Constraints constraints;
  StepMode mode = StepMode::Training;
  MemoryModel memoryModel = MemoryModel::Full;
  Target target = Target::Native;
  OptimizerSemantics optimizerSemantics = OptimizerSemantics::Exact;
  /// Share of the rows of a table in host memory that a software cache in
  /// device memory holds; 0: none, rows are read from the host.
  double cacheLoadFactor = 0;

  /// Index of a table by name, or -1. Linear; build a map for many look-ups.
  int tableIndex(std::string_view name) const;
  bool operator==(const ShardingProblem &) const = default;
};

/// The type in which ids of a table travel and are read. (An artifact takes the
/// widest of all tables of an input.)
inline IdType packedIdType(const ShardingProblem &problem, int table) {
  if (problem.target == Target::TorchRec19)
    return problem.batch.idType;
  return packedIdType(problem.batch.idType,
                      problem.tables[static_cast<size_t>(table)].rows,
                      problem.topology.deviceCount());
}

/// The problem of serving the tables of another: its mode is inference, so that
/// tables have no optimizers, and there is one backward to no update.
ShardingProblem served(ShardingProblem problem);

/// Global batch of a feature.
inline int64_t featureBatch(const ShardingProblem &problem,
                            const Feature &feature) {
  return feature.batch > 0 ? feature.batch : problem.batch.globalSize;
}

/// Mean number of a feature's ids in a global batch.
inline double lookupsOf(const ShardingProblem &problem,
                        const Feature &feature) {
  return static_cast<double>(featureBatch(problem, feature)) *
         feature.presence * feature.meanPooling;
}

/// The tier of a table with a cache share: the one its constraint names, else
/// "dram" where all devices are GPUs and "ssd" where some are CPUs.
Tier cacheTier(const Topology &topology, const TableConstraint &constraint);

/// The problem with the statistics of one of its snapshots in place of its own,
/// and without snapshots. This and the functions below require a problem that
/// passes check().
ShardingProblem atSnapshot(const ShardingProblem &problem, size_t snapshot);

/// The weights of the snapshots as shares of 1.
std::vector<double> snapshotShares(const ShardingProblem &problem);

/// One problem in place of all snapshots: statistics in the weighted mean, and
/// of each feature the largest p99 pooling. The problem itself when it has no
/// snapshots.
ShardingProblem summarized(const ShardingProblem &problem);

/// Everything wrong with the tables, features, batch and settings; `where` is
/// the path in the workload file.
Diagnostics checkWorkload(const ShardingProblem &problem);

/// checkWorkload, and the topology, and the constraints against both. A
/// problem without errors never makes the planner overflow or crash.
Diagnostics check(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARDINGPROBLEM_H
