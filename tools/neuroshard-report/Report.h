//===- Report.h - A plan as tables a person can read -----------*- C++ -*-===//
//
// Per device what a plan places there, what it occupies and what it costs;
// and the cost next to that of other ways to plan.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_REPORT_REPORT_H
#define NEUROSHARD_TOOLS_REPORT_REPORT_H

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Objective.h"
#include "neuroshard/Planner/ShardingPlan.h"
#include "neuroshard/Planner/ShardingProblem.h"

#include <ostream>

namespace neuroshard {

/// One row per device: shards, GiB by kind (peak, as verify() counts it), ms of
/// compute and communication; and how the tables are cut. Expects a plan that
/// verify() accepts.
void printDevices(const ShardingProblem &problem, const ShardingPlan &plan,
                  const CostBreakdown &cost, std::ostream &out);

/// The predicted cost of `plan` and of the plan of every baseline algorithm,
/// or why a baseline has none.
void printBaselines(const ShardingProblem &problem, const ShardingPlan &plan,
                    const CostModel &model, const ObjectiveOptions &objective,
                    std::ostream &out);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REPORT_REPORT_H
