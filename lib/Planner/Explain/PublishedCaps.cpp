//===- PublishedCaps.cpp - Caps that leave the published search no plan ---===//

#include "PublishedCaps.h"

#include "Placement/Greedy.h"

#include <cstdio>

using namespace neuroshard;

std::optional<PlanningError>
neuroshard::diagnoseCaps(const SearchContext &context,
                         const std::vector<UnitPtr> &units) {
  if (context.options.algorithm != Algorithm::Published)
    return std::nullopt;
  GreedyJob job;
  job.units = units;
  job.order = orderByCost(context, units);
  GreedyJob *one[] = {&job};
  GreedyPlacer(context, {kNoCap}).run(one);
  if (!(job.costMs < kInfiniteMs))
    return std::nullopt;
  char largest[32];
  std::snprintf(largest, sizeof largest, "%.3g",
                context.options.published.gridEnd);
  PlanningError error;
  error.limit = Limit::Algorithm;
  error.message = "algorithm 'published' found no placement under its caps on "
                  "the columns of a device, of which the largest is ";
  error.message.append(largest).append(
      " times the mean (grid_end); without caps the tables fit");
  error.advice = "raise grid_end, or take algorithm 'default', which also "
                 "lifts the caps";
  return error;
}
