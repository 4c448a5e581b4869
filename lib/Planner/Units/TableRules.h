//===- TableRules.h - Devices and cuts that a table may have ----*- C++ -*-===//
///
/// \file
/// The constraints, the target and the optimizer together.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_TABLERULES_H
#define NEUROSHARD_LIB_PLANNER_UNITS_TABLERULES_H

#include "neuroshard/Model/ShardingPlan.h"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// Where one table may lie and how it may be cut.
struct TableRules {
  /// By ShardingKind.
  std::array<bool, 6> allowed = {true, true, true, true, true, true};
  int64_t minWidth = 1;
  /// TableConstraint::cacheShare.
  double cacheShare = 0;
  /// cacheTier(), of a table with a cache share.
  Tier tier = Tier::Hbm;
  /// TableConstraint::syncEvery.
  int64_t syncEvery = 0;
  /// Per device: may it hold the table? Empty: all may.
  std::vector<bool> devices;
  /// Sets of Constraints::separate the table belongs to.
  std::vector<int> separateSets;
  /// The first table of this one's co-located set, or -1. Sets that share a
  /// table count as one set.
  int coLocateLeader = -1;
  /// Has shards written by hand.
  bool fixed = false;
  /// Has a list of allowed kinds.
  bool kindsListed = false;
  /// Column shards of it must exchange norms to train as the whole table does.
  bool exactRows = false;
  /// Shards written by hand or kept from the previous plan cut it by columns.
  bool columnsCutBefore = false;

  bool allows(ShardingKind kind) const {
    return allowed[static_cast<size_t>(kind)];
  }
  bool allowsDevice(int device) const {
    return devices.empty() || devices[static_cast<size_t>(device)];
  }
};

/// Puts a shard that is not written by hand into the tier of its table, with a
/// cache of its share of the rows, and lets copies drift if those of the table
/// do.
void followRules(const TableRules &rules, Shard &shard);

/// The rules of each table. `previous`: the shards of the plan in use, if there
/// is one.
std::vector<TableRules> tableRules(const ShardingProblem &problem,
                                   std::span<const Shard> previous);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_TABLERULES_H
