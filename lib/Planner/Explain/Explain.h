//===- Explain.h - Sentences that explain a plan ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
#define NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H

#include "Units/SearchContext.h"
#include "neuroshard/Planner/Objective.h"

#include <string>
#include <vector>

namespace neuroshard {

/// One sentence per table that `plan` cuts or replicates, with the cost of the
/// opposite; with many tables, and after the deadline, later ones share
/// sentences. `problem` is the one that the context was made for.
std::vector<std::string> explainCuts(const SearchContext &context,
                                     const ShardingProblem &problem,
                                     const ShardingPlan &plan);

/// Names the slowest device and the shards on it that take the most time.
/// `cost`: evaluate() of the plan.
std::vector<std::string> explainBottleneck(const SearchContext &context,
                                           const ShardingPlan &plan,
                                           const CostBreakdown &cost);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_EXPLAIN_EXPLAIN_H
