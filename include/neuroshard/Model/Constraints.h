//===- Constraints.h - Constraints on a plan --------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_CONSTRAINTS_H
#define NEUROSHARD_MODEL_CONSTRAINTS_H

#include "neuroshard/Model/Reserves.h"
#include "neuroshard/Model/Shard.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace neuroshard {

/// How a table is cut. TableRowWise: by rows, inside one innermost group.
enum class ShardingKind {
  TableWise,
  ColumnWise,
  RowWise,
  TableRowWise,
  RowColumn,
  Replicated
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

/// How one table may be cut.
struct TableConstraint {
  int table = 0;
  /// Kinds of its cut; empty: all.
  std::vector<ShardingKind> allowedKinds = {};
  /// Smallest width of a shard, unless the table is narrower.
  int64_t minWidth = 1;
  /// Share of the rows for which there are places in the caches of a table
  /// below device memory, in (0, 1]; 0: the table is in device memory.
  double cacheShare = 0;
  /// The tier of such a table; see cacheTier().
  std::optional<Tier> tier = std::nullopt;
  /// If above 0, copies of the table drift and are averaged after so many steps
  /// (Shard::syncEvery).
  int64_t syncEvery = 0;
  bool operator==(const TableConstraint &) const = default;
};

struct Constraints {
  std::vector<PinConstraint> pins;
  std::vector<ForbidConstraint> forbids;
  /// Sets of tables that lie on the same devices.
  std::vector<std::vector<int>> coLocate;
  /// Sets of tables of which no device holds more than one.
  std::vector<std::vector<int>> separate;
  std::vector<TableConstraint> tables;
  Reserves reserves;
  /// Shards written by hand; the plan contains them as they are.
  std::vector<Shard> fixedShards;

  bool operator==(const Constraints &) const = default;
};

std::string_view toString(ShardingKind kind);
std::optional<ShardingKind> parseShardingKind(std::string_view text);

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_CONSTRAINTS_H
