//===- Greedy.h - Greedy placement under caps on dims -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H
#define NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H

#include "Units/ComputeBatch.h"
#include "Units/SearchState.h"

#include <limits>
#include <span>
#include <vector>

namespace neuroshard {

/// Of a plan that was not found.
inline constexpr double kInfiniteMs = std::numeric_limits<double>::infinity();
/// A cap that admits any dims.
inline constexpr double kNoCap = std::numeric_limits<double>::infinity();

/// A list of units, and the best placement found for it.
struct GreedyJob {
  std::vector<UnitPtr> units;
  /// Indices of the units that have a choice, in the order of placing.
  std::vector<size_t> order;
  /// Out: the cost, and the device of each entry of `order`; no devices when
  /// no cap led to a placement.
  double costMs = kInfiniteMs;
  std::vector<int> devices;
  /// Out: caps tried.
  int64_t evaluations = 0;
};

/// Places the units of a job one after the other on the device with the
/// smallest compute (with several device classes: the smallest after adding
/// it), among those with room and with dims + its dims <= cap x total dims /
/// devices; ties: less memory used, then the first. Does so for each cap and
/// keeps the cheapest result; of equal ones that of the smallest cap.
///
/// Caps that have led to the same choices so far share one run, and all runs
/// of all jobs go in step, so that each step evaluates its devices in one
/// batch.
class GreedyPlacer {
public:
  /// `caps` ascending; kNoCap: any dims.
  GreedyPlacer(const SearchContext &context, std::vector<double> caps);

  /// Jobs that a deadline leaves no time for stay without devices.
  void run(std::span<GreedyJob *const> jobs) const;

private:
  const SearchContext &context;
  const std::vector<double> caps;
};

/// The caps of the published grid.
std::vector<double> gridCaps(const PublishedSettings &settings);

/// The units that have a choice, costliest first (stable); those with fewer
/// devices to choose from before all others.
std::vector<size_t> orderByCost(const SearchContext &context,
                                const std::vector<UnitPtr> &units);

/// The state a job's result stands for.
SearchState stateOf(const SearchContext &context, const GreedyJob &job);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H
