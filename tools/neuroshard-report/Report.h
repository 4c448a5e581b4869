//===- Report.h - A plan as tables a person can read -----------*- C++ -*-===//
//
// Per device what a plan places there, what it occupies and what it costs;
// and the cost next to that of other ways to plan.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_REPORT_REPORT_H
#define NEUROSHARD_TOOLS_REPORT_REPORT_H

#include "neuroshard/Planner/Search.h"

#include <ostream>
#include <string>

namespace neuroshard {

/// One row per device: shards, GiB by kind (peak, as verify() counts it), ms of
/// compute and communication; and how the tables are cut. Expects a plan that
/// verify() accepts.
void printDevices(const ShardingProblem &problem, const ShardingPlan &plan,
                  const CostBreakdown &cost, std::ostream &out);

/// Costs under the snapshots of the statistics, why tables are cut, what moves
/// from the previous plan; what there is of it.
void printExplanation(const SearchResult &result, std::ostream &out);

/// The predicted cost of `plan` and of the plan of every other algorithm, or
/// why one has none. `search`: objective and other settings.
void printBaselines(const ShardingProblem &problem, const ShardingPlan &plan,
                    const CostModel &model, const SearchOptions &search,
                    std::ostream &out);

/// printf to a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REPORT_REPORT_H
