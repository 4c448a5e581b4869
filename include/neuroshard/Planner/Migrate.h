//===- Migrate.h - Cost of changing from one plan to another ----*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_MIGRATE_H
#define NEUROSHARD_PLANNER_MIGRATE_H

#include "neuroshard/Planner/Search.h"

namespace neuroshard {

/// The cost of `previous` for this problem, or why it does not serve it; no
/// moves. Its tables may be others than the problem's.
Migration pricePrevious(const ShardingProblem &problem,
                        const ShardingPlan &previous, const CostModel &model,
                        const ObjectiveOptions &objective);

/// The migration from `previous` to `next`, a valid plan for this problem.
/// Errors: what is wrong with `previous` whatever the tables.
Expected<Migration> migrate(const ShardingProblem &problem,
                            const ShardingPlan &previous,
                            const ShardingPlan &next, const CostModel &model,
                            const ObjectiveOptions &objective);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_MIGRATE_H
