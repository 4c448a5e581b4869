//===- NearPlan.cpp - Better plans near one in use ------------------------===//
///
/// \file
/// Puts a plan on a board and improves it by descent, where each edit must save
/// more than moving its bytes costs.
//===----------------------------------------------------------------------===//

#include "NearPlan.h"

#include "LocalSearch/LocalSearch.h"
#include "LocalSearch/MovedBytes.h"
#include "Replan/PlanUnits.h"

using namespace neuroshard;

static constexpr int64_t kBudget = 200000;

SearchOutcome neuroshard::placeAsPlanned(const SearchContext &context,
                                         const std::vector<UnitPtr> &units,
                                         const ShardingPlan &plan) {
  SearchOutcome outcome;
  PlanUnits reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState state = reader.state();
  if (state.withinMemory())
    outcome.state.emplace(std::move(state));
  outcome.stopReason = "the given plan is taken as it is";
  return outcome;
}

SearchOutcome neuroshard::searchNear(const SearchContext &context,
                                     const std::vector<UnitPtr> &units,
                                     const ShardingPlan &plan,
                                     const ShardingPlan &previous,
                                     double msPerByte) {
  SearchOutcome outcome;
  PlanUnits reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState start = reader.state();
  if (!start.withinMemory())
    return outcome;
  Board board(context, reader.wholes, start);
  MovedBytes migration(board, previous, msPerByte);
  int64_t budget = context.options.evaluationBudget;
  descend(board, budget > 0 ? budget : kBudget, outcome.evaluations,
          &migration);
  outcome.state.emplace(board.state());
  outcome.stopReason = context.deadlinePassed()
                           ? context.whyStopped()
                           : "no step saves more than its move costs";
  return outcome;
}
