//===- ShardingPlan.h - Placement of all shards -----------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_SHARDINGPLAN_H
#define NEUROSHARD_MODEL_SHARDINGPLAN_H

#include "neuroshard/Model/Shard.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neuroshard {

/// All of a table on one device, under the table's name.
inline Shard wholeOn(const Table &table, int device) {
  return {.name = table.name,
          .table = table.name,
          .rowEnd = table.rows,
          .colEnd = table.dim,
          .devices = {device}};
}

/// Settings of a provenance: the wire type of results and gradients, and those
/// that the search could choose from.
inline constexpr std::string_view kWireType = "wire_type";
inline constexpr std::string_view kWireTypes = "wire_types";

/// How a plan came about. Empty for a plan written by hand.
struct Provenance {
  std::string algorithm;
  std::string objective;
  std::string costModel;
  std::optional<double> predictedCostMs;
  std::optional<double> lowerBoundMs;
  uint64_t seed = 0;
  /// Settings of the search, in the order they were given. With the setting
  /// kWireTypes, kWireType was chosen among its types.
  std::vector<std::pair<std::string, std::string>> settings;

  bool operator==(const Provenance &) const = default;
};

/// Shards that cover each table exactly once (or replicate it).
struct ShardingPlan {
  std::vector<Shard> shards;
  int deviceCount = 0;
  OptimizerSemantics optimizerSemantics = OptimizerSemantics::Exact;
  /// tableFingerprint() of the tables that the plan was made for; empty:
  /// unknown.
  std::string fingerprint;
  Provenance provenance;

  bool operator==(const ShardingPlan &) const = default;
};

/// The wire type that the search chose for the plan; none if it had no choice,
/// so that it is the problem's.
std::optional<WireType> chosenWireType(const ShardingPlan &plan);

/// The share of a table's elements that a shard has.
inline double elementShare(const Table &table, const Shard &shard) {
  return static_cast<double>(shard.rows()) / static_cast<double>(table.rows) *
         (static_cast<double>(shard.width()) / static_cast<double>(table.dim));
}

/// Whether a shard is a whole table on every device.
bool isWholeOnAll(const Table &table, const Shard &shard, int deviceCount);
/// Whether it is that, and its copies do not drift.
bool isReplicated(const Table &table, const Shard &shard, int deviceCount);
/// Whether a shard is on several devices otherwise.
bool isCopied(const Table &table, const Shard &shard, int deviceCount);

/// Kind of a table's cut, given all its shards. `innerGroupOfDevice` is
/// groupOfDevices() of the innermost level.
ShardingKind classify(const Table &table,
                      const std::vector<const Shard *> &shards,
                      const std::vector<int> &innerGroupOfDevice);

/// Do some of the shards, all of this table, hold only a part of its columns?
bool isColumnSplit(const Table &table, std::span<const Shard> shards);

/// isColumnSplit() by index of the table; shards of other tables are ignored.
std::vector<bool> columnSplitTables(const std::vector<Table> &tables,
                                    std::span<const Shard> shards);

/// needsNormExchange() of a table whose shards these are.
bool needsNormExchange(const Table &table, OptimizerSemantics semantics,
                       std::span<const Shard> shards);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_SHARDINGPLAN_H
