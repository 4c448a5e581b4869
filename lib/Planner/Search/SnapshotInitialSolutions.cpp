//===- SnapshotInitialSolutions.cpp - Plans for single snapshots ----------===//

#include "SnapshotInitialSolutions.h"

#include "InitialUnits/NestedSearch.h"
#include "Placement/Greedy.h"
#include "Replan/PlanUnits.h"

#include <algorithm>

using namespace neuroshard;

namespace {

/// The share of the deadline that all these searches may take together.
constexpr double kDeadlineShare = 0.5;

} // namespace

void neuroshard::addSnapshotSolutions(const SearchContext &context,
                                      const std::vector<UnitPtr> &units,
                                      int64_t steps, const SearchRun &run,
                                      std::vector<InitialSolution> &solutions,
                                      SearchOutcome &outcome) {
  size_t count = context.periods.size() + 1;
  double end =
      context.seconds() +
      context.options.deadlineSeconds.value_or(kInfiniteMs) * kDeadlineShare;
  for (size_t i = 0;
       i < count && !context.deadlinePassed() && context.seconds() < end; ++i) {
    SearchOptions options = optionsWithin(context, kDeadlineShare, i, count);
    bool summary = i == 0;
    if (!summary)
      options.evaluationBudget = std::max<int64_t>(
          1, steps / static_cast<int64_t>(context.periods.size()));
    std::optional<ShardingPlan> plan = planFor(
        summary ? context.problem : context.periods[i - 1], context.model,
        options, run, RowWidths::Equal, outcome.evaluations);
    if (!plan)
      continue;
    PlanUnits reader(context, *plan);
    if (!reader.read(units))
      continue;
    SearchState state = reader.state();
    if (!state.withinMemory())
      continue;
    std::string what = "the plan for the mean statistics";
    if (!summary)
      what = "the plan for snapshot " + std::to_string(i);
    solutions.push_back(
        {state, state.costMs(), what, Family::Period,
         std::make_shared<const std::vector<UnitPtr>>(reader.wholes)});
    outcome.tried.push_back(what + ": " + formatMs(solutions.back().costMs));
    context.noteCost(solutions.back().costMs);
  }
}
