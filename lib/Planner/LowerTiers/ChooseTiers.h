//===- ChooseTiers.h - Tiers and caches of all tables -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_CHOOSETIERS_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_CHOOSETIERS_H

#include "TierOptions.h"

#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

/// An option of each table.
struct TierChoice {
  std::vector<size_t> options;
  TierBytes bytes;
  double ms = 0;
};

/// The options that fit into `room` with the least time of fetches: for each
/// table, the lower convex hull of its options over bytes of device memory;
/// from all hulls the steps that save most per byte, until the memory is taken.
/// Where host memory or disks do not hold what lies there then, their bytes
/// have a price (a Lagrange multiplier), the least one at which they do.
/// Nothing if no options fit.
std::optional<TierChoice> chooseTiers(std::span<const TieredTable> tables,
                                      const TierBytes &room);

/// What the tables take at least of device memory, and what of hosts with it:
/// each in its smallest option.
TierBytes leastBytes(std::span<const TieredTable> tables);

/// The problem whose tables have the tiers and cache shares of a choice.
ShardingProblem withTiers(const ShardingProblem &problem,
                          std::span<const TieredTable> tables,
                          const TierChoice &choice);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_CHOOSETIERS_H
