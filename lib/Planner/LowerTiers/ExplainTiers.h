//===- ExplainTiers.h - Tables in lower tiers, in words ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_EXPLAINTIERS_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_EXPLAINTIERS_H

#include "TierOptions.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/Search.h"

#include <span>
#include <string>
#include <vector>

namespace neuroshard {

/// A sentence for each table in a lower tier, those that fetch most first: its
/// cache, hits, and bytes of a step; then what the step waits for fetches, and
/// what more device memory would bring.
std::vector<std::string> explainTiers(const ShardingProblem &problem,
                                      const ShardingPlan &plan,
                                      const CostBreakdown &cost);

/// Why there is no plan with lower tiers either: what these tables take at
/// least, and what there is; or else the error of the last search.
std::string whyNoTiers(std::span<const TieredTable> tables,
                       const TierBytes &room, const std::string &failure);

/// Adds the option `tiers` to the advice of an error of device memory if all
/// would fit with it.
void adviseTiers(const ShardingProblem &problem, PlanningError &error);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_EXPLAINTIERS_H
