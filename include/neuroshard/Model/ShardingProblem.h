//===- ShardingProblem.h - What is to be sharded, onto what -----*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARDINGPROBLEM_H
#define NEUROSHARD_MODEL_SHARDINGPROBLEM_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/Topology.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

enum class ElementType { F32, F16, BF16 };
enum class IdType { I32, I64 };
enum class OptimizerKind { SGD, Adagrad, RowWiseAdagrad, Adam };
enum class Pooling { Sum, Mean, None };

/// What a row-wise optimizer's state means when a table is split by columns.
/// Exact: one state per row, as without sharding (column owners exchange one
/// squared norm per unique row). PerShard: one per shard, which trains
/// differently.
enum class OptimizerSemantics { Exact, PerShard };

/// Full: every term of docs/memory.md. WeightsOnly: rows x width x bytes, as
/// in the published tasks.
enum class MemoryModel { Full, WeightsOnly };

/// What the executor of the plan can run. TorchRec19: row-wise is
/// ceil(rows / devices) rows on each of all devices, table-row-wise the same
/// over one whole innermost group, on CPUs with rows for each of them; one kind
/// per table; widths are multiples of 4, and equal for a table's shards on one
/// device; replicas are on all devices.
enum class Target { Native, TorchRec19 };

/// How a table is cut. TableRowWise: by rows, inside one innermost group.
enum class ShardingKind {
  TableWise,
  ColumnWise,
  RowWise,
  TableRowWise,
  RowColumn,
  Replicated
};

int64_t elementBytes(ElementType type);
int64_t idBytes(IdType type);

std::string_view toString(ElementType type);
std::string_view toString(IdType type);
std::string_view toString(OptimizerKind kind);
std::string_view toString(Pooling pooling);
std::string_view toString(OptimizerSemantics semantics);
std::string_view toString(MemoryModel model);
std::string_view toString(Target target);
std::string_view toString(ShardingKind kind);
std::optional<ElementType> parseElementType(std::string_view text);
std::optional<IdType> parseIdType(std::string_view text);
std::optional<OptimizerKind> parseOptimizerKind(std::string_view text);
std::optional<Pooling> parsePooling(std::string_view text);
std::optional<OptimizerSemantics>
parseOptimizerSemantics(std::string_view text);
std::optional<MemoryModel> parseMemoryModel(std::string_view text);
std::optional<Target> parseTarget(std::string_view text);
std::optional<ShardingKind> parseShardingKind(std::string_view text);

/// An optimizer and its hyperparameters; those it does not use stay at their
/// defaults.
struct Optimizer {
  OptimizerKind kind = OptimizerKind::SGD;
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double initialAccumulator = 0;
  double weightDecay = 0;

  bool operator==(const Optimizer &) const = default;
};

/// A point of the curve "the hottest rowShare of the rows get lookupShare of
/// the lookups"; both in [0, 1].
struct RowMassQuantile {
  double rowShare = 0;
  double lookupShare = 0;

  bool operator==(const RowMassQuantile &) const = default;
};

inline constexpr int kReuseBins = 17;
/// Bin i of a reuse histogram: ids seen more than kReuseBinUpper[i - 1] and at
/// most kReuseBinUpper[i] times; the last bin is open (stored as 0).
inline constexpr std::array<int64_t, kReuseBins> kReuseBinUpper = {
    1,   2,    4,    8,    16,   32,    64,    128, 256,
    512, 1024, 2048, 4096, 8192, 16384, 32768, 0};

/// How often an id of a bin is seen, at least and at most; the open last bin is
/// taken to end at twice its beginning.
struct ReuseRange {
  int64_t least = 1;
  int64_t most = 1;
};
constexpr ReuseRange reuseRange(size_t bin) {
  int64_t least = bin == 0 ? 1 : kReuseBinUpper[bin - 1] + 1;
  return {least, bin + 1 == kReuseBins ? 2 * least : kReuseBinUpper[bin]};
}

/// How the ids of a table repeat within one batch.
struct AccessStatistics {
  /// Of the distinct ids of a batch, the share in each bin; sums to 1.
  std::array<double, kReuseBins> reuse = {};
  /// Global batch at which it was measured.
  int64_t batch = 0;
  /// Optional; ascending in both members.
  std::vector<RowMassQuantile> rowMass;

  bool operator==(const AccessStatistics &) const = default;
};

struct Table {
  std::string name;
  int64_t rows = 0;
  int64_t dim = 0;
  ElementType elementType = ElementType::F32;
  Optimizer optimizer;
  /// Ids are hashed into the rows, rather than assigned once and for all.
  bool hashed = false;
  std::optional<AccessStatistics> access;

  bool operator==(const Table &) const = default;
};

/// One input that reads a table.
struct Feature {
  std::string name;
  /// Index into ShardingProblem::tables.
  int table = 0;
  Pooling pooling = Pooling::Sum;
  /// Mean ids per present sample.
  double meanPooling = 1;
  /// Ids per sample of a batch that 99 % of batches stay below, absent samples
  /// included; 0: meanPooling x presence.
  double p99Pooling = 0;
  /// Share of samples that have the feature at all.
  double presence = 1;
  /// Its own global batch; 0: that of the problem.
  int64_t batch = 0;
  /// Ids carry per-sample weights / those need gradients.
  bool weighted = false;
  bool needsWeightGradient = false;

  bool operator==(const Feature &) const = default;
};

struct Batch {
  /// Samples over all devices.
  int64_t globalSize = 0;
  IdType idType = IdType::I64;
  ElementType outputType = ElementType::F32;
  /// Type in which pooled results and gradients travel.
  ElementType wireType = ElementType::F32;
  /// Copies of the ids kept by a pipelined input.
  int inputCopies = 2;

  bool operator==(const Batch &) const = default;
};

/// Every shard of `table` lies on `devices` only.
struct PinConstraint {
  int table = 0;
  std::vector<int> devices;
  bool operator==(const PinConstraint &) const = default;
};

/// No shard of `table` lies on any of `devices`.
struct ForbidConstraint {
  int table = 0;
  std::vector<int> devices;
  bool operator==(const ForbidConstraint &) const = default;
};

/// What one table allows.
struct TableConstraint {
  int table = 0;
  /// Empty: every kind.
  std::vector<ShardingKind> allowedKinds;
  /// Smallest width of a shard, unless the table is narrower.
  int64_t minWidth = 1;
  bool operator==(const TableConstraint &) const = default;
};

/// Bytes held back on each device; unset: the default of its device class.
struct Reserves {
  std::optional<int64_t> denseBytes;
  std::optional<int64_t> fragmentationBytes;
  std::optional<int64_t> communicatorBytes;
  bool operator==(const Reserves &) const = default;
};

struct Constraints {
  std::vector<PinConstraint> pins;
  std::vector<ForbidConstraint> forbids;
  /// Table sets whose members occupy the same set of devices.
  std::vector<std::vector<int>> coLocate;
  /// Table sets of which no device holds shards of two.
  std::vector<std::vector<int>> separate;
  std::vector<TableConstraint> tables;
  Reserves reserves;
  /// Shards written by hand; the plan contains them as they are.
  std::vector<Shard> fixedShards;

  bool operator==(const Constraints &) const = default;
};

/// What one period says about a feature; see Feature.
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

/// Statistics of one period (a day, the peak hour). What it does not list is
/// as the problem itself says.
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
  /// When there are any, a plan's cost is the weighted mean of its costs under
  /// each, and its memory must do with each feature's largest p99 pooling.
  std::vector<Snapshot> snapshots;
  Batch batch;
  Topology topology;
  Constraints constraints;
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

/// The problem with the statistics of one of its snapshots in place of its own,
/// and without snapshots. Here and below the problem is one that check() finds
/// nothing wrong with.
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

/// A hash over (name, rows, dim, element type,
/// optimizer kind) of each, so that a plan made for other tables is noticed.
/// "fnv1a64:" and 16 hex digits.
std::string tableFingerprint(const std::vector<Table> &tables);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARDINGPROBLEM_H
