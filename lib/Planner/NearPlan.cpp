//===- NearPlan.cpp - Better plans near one in use ------------------------===//
///
/// \file
/// Puts a plan on a board and takes the default search's closing steps from
/// there, as far as each saves more than moving its bytes costs.
//===----------------------------------------------------------------------===//

#include "Algorithms.h"
#include "Anneal.h"
#include "PlanReader.h"
#include "Residence.h"

using namespace neuroshard;

static constexpr int64_t kBudget = 200000;

Outcome neuroshard::searchNear(const SearchContext &context,
                               const std::vector<UnitPtr> &units,
                               const ShardingPlan &plan, double msPerByte) {
  Outcome outcome;
  PlanReader reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState start = reader.state();
  if (!start.withinMemory())
    return outcome;
  Board board(context, reader.wholes, start);
  Residence residence(board, msPerByte);
  descend(board, kBudget, outcome.evaluations, &residence);
  outcome.state.emplace(board.state());
  outcome.stopReason = context.deadlinePassed()
                           ? context.whyStopped()
                           : "no step saves more than its move costs";
  return outcome;
}
