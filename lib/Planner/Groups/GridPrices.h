//===- GridPrices.h - Prices of parts of tables on groups -------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GRIDPRICES_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GRIDPRICES_H

#include "Units/SearchContext.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/Objective.h"

#include <array>
#include <vector>

namespace neuroshard {

/// The parts of a step that add up, each as long as in the group that takes
/// longest: ids between groups and inside them; lookups; results inside groups
/// and between them; gradients between groups; gradients inside them with
/// updates.
inline constexpr size_t kGridStages = 7;
using StageMs = std::array<double, kGridStages>;

/// An even cut of a table over groups, each of which has one part of it, and of
/// each part over the devices of its group.
struct Grid {
  int rows = 1;      ///< ranges of rows, each on `columns` groups.
  int columns = 1;   ///< ranges of columns.
  int innerRows = 1; ///< ranges of rows of a part.
  int innerColumns = 1;

  int parts() const { return rows * columns; }
  bool operator==(const Grid &) const = default;
};

/// What a part adds to each stage of a step, and to the memory of each device
/// of its group at most.
struct PartPrice {
  StageMs ms = {};
  int64_t bytes = 0;

  double totalMs() const;
};

/// Prices a part as if every group had such a one beside the replicated tables:
/// then no stage waits for another group, and what it takes is the part's own.
class GridPrices {
public:
  /// `replicas`: shards on all devices. `context` must outlive it.
  GridPrices(const SearchContext &context, int groupSize,
             const ShardingPlan &replicas);

  /// The part of a table with this number, row by row, cut for its group. The
  /// grid must be possible.
  std::vector<Shard> shardsOf(int table, const Grid &grid, int part,
                              int group) const;

  /// Whether rules and sizes allow the grid. Expects a table that may lie on
  /// any device.
  bool isPossible(int table, const Grid &grid) const;

  /// Of the first part in a range of rows, or of the last one, which is as wide
  /// as any.
  PartPrice priceOf(int table, const Grid &grid, bool last) const;

  /// The stages of a step without parts, whose exchanges are empty.
  const StageMs &emptyMs() const { return none; }

private:
  StageMs stagesOf(const std::vector<DeviceLoad> &group,
                   const std::vector<RelayLoad> &ofGroup) const;
  int64_t bytesOf(int table, const Shard &shard, bool norms,
                  const RelayLoad &relay) const;

  const SearchContext &context;
  int groupSize;
  PlanWork replicas;
  std::vector<DeviceLoad> replicaLoads; ///< of the devices of a group.
  StageMs none; ///< of the replicas, with empty exchanges.
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GRIDPRICES_H
