//===- NestedSearch.cpp - Searches inside a search ------------------------===//

#include "NestedSearch.h"

#include "InitialUnits.h"

#include <algorithm>

using namespace neuroshard;

SearchOptions neuroshard::optionsWithin(const SearchContext &context,
                                        double deadlineShare, size_t done,
                                        size_t count) {
  SearchOptions options = context.options;
  if (options.deadlineSeconds)
    options.deadlineSeconds =
        std::max(0.0, std::min(*options.deadlineSeconds * deadlineShare /
                                   static_cast<double>(count),
                               *options.deadlineSeconds - context.seconds()));
  if (options.progress)
    options.progress = [&context, done, count](const SearchProgress &inner) {
      context.noteShare((static_cast<double>(done) + inner.share) /
                        static_cast<double>(count));
      return !context.deadlinePassed();
    };
  return options;
}

std::optional<ShardingPlan>
neuroshard::planFor(const ShardingProblem &problem, const CostModel &model,
                    const SearchOptions &options, const SearchRun &run,
                    RowWidths widths, int64_t &evaluations) {
  SearchContext context(problem, model, options, widths);
  auto units = initialUnits(context);
  if (!units)
    return std::nullopt;
  SearchOutcome outcome = run(context, *units);
  evaluations += outcome.evaluations;
  if (!outcome.state)
    return std::nullopt;
  return outcome.state->plan();
}
