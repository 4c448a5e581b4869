//===- ImproveTiers.h - Tiers, caches and places of a plan ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_IMPROVETIERS_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_IMPROVETIERS_H

#include "TierOptions.h"
#include "Units/SearchContext.h"

#include <functional>
#include <span>

namespace neuroshard {

/// Improves a plan whose shards were placed with tiers and caches of given
/// sizes:
///
/// - On one device, tiers and caches of all shards are chosen anew for the
///   memory that it has, so that one cache shrinks for another to grow, or one
///   shard leaves device memory for another.
/// - Shards move to another device, or change places, with tiers and caches
///   chosen anew on both.
///
/// Each step that lowers the cost is taken, until none does or `isOver`.
/// Shards with copies, written by hand, or of tables that are not among
/// `tables` stay. `tiers` are those below device memory. The plan is one of the
/// context's problem, and what is left of devices goes to caches
/// (growCaches()).
void improveTiers(const SearchContext &context,
                  std::span<const TieredTable> tables,
                  std::span<const Tier> tiers,
                  const std::function<bool()> &isOver, ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_IMPROVETIERS_H
