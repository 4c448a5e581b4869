//===- Migrate.cpp - Cost of changing from one plan to another ------------===//

#include "neuroshard/Planner/Migrate.h"

#include "KeepShards.h"
#include "Migration.h"
#include "neuroshard/Model/TableFingerprint.h"
#include "neuroshard/Planner/Verify.h"

using namespace neuroshard;

Migration neuroshard::pricePrevious(const ShardingProblem &problem,
                                    const ShardingPlan &previous,
                                    const CostModel &model,
                                    const ObjectiveOptions &objective) {
  ShardingPlan plan = previous;
  plan.fingerprint = tableFingerprint(problem.tables);
  Migration migration;
  Diagnostics errors = verify(plan, problem);
  if (errors.empty())
    migration.previousCostMs = evaluate(problem, plan, model, objective).costMs;
  else
    migration.whyNotPrevious = errors.front().str();
  return migration;
}

Expected<Migration> neuroshard::migrate(const ShardingProblem &problem,
                                        const ShardingPlan &previous,
                                        const ShardingPlan &next,
                                        const CostModel &model,
                                        const ObjectiveOptions &objective) {
  Diagnostics errors = checkPrevious(previous);
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  Migration migration = migrationBetween(problem, previous, next);
  Migration priced = pricePrevious(problem, previous, model, objective);
  migration.previousCostMs = priced.previousCostMs;
  migration.whyNotPrevious = std::move(priced.whyNotPrevious);
  return migration;
}
