//===- NearPlan.cpp - Better plans near one in use ------------------------===//
///
/// \file
/// Puts a plan on a board and takes the default search's closing steps from
/// there, as far as each saves more than moving its bytes costs.
//===----------------------------------------------------------------------===//

#include "NearPlan.h"

#include "LocalSearch/Anneal.h"
#include "LocalSearch/MigrationCost.h"
#include "Replan/PlanUnits.h"

using namespace neuroshard;

static constexpr int64_t kBudget = 200000;

Outcome neuroshard::placeAsPlanned(const SearchContext &context,
                                   const std::vector<UnitPtr> &units,
                                   const ShardingPlan &plan) {
  Outcome outcome;
  PlanUnits reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState state = reader.state();
  if (state.withinMemory())
    outcome.state.emplace(std::move(state));
  outcome.stopReason = "the plan was there";
  return outcome;
}

Outcome neuroshard::searchNear(const SearchContext &context,
                               const std::vector<UnitPtr> &units,
                               const ShardingPlan &plan,
                               const ShardingPlan &previous, double msPerByte) {
  Outcome outcome;
  PlanUnits reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState start = reader.state();
  if (!start.withinMemory())
    return outcome;
  Board board(context, reader.wholes, start);
  MigrationCost migration(board, previous, msPerByte);
  int64_t budget = context.options.evaluationBudget;
  descend(board, budget > 0 ? budget : kBudget, outcome.evaluations,
          &migration);
  outcome.state.emplace(board.state());
  outcome.stopReason = context.deadlinePassed()
                           ? context.whyStopped()
                           : "no step saves more than its move costs";
  return outcome;
}
