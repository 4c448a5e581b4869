//===- Greedy.h - Greedy placement under caps on dims -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H
#define NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H

#include "Units/ComputeBatch.h"
#include "Units/SearchState.h"

#include <limits>
#include <span>
#include <vector>

namespace neuroshard {

/// Cost of a plan that was not found.
inline constexpr double kInfiniteMs = std::numeric_limits<double>::infinity();
/// A cap that admits any dims.
inline constexpr double kNoCap = std::numeric_limits<double>::infinity();

/// Units to place, and the best placement found for them.
struct GreedyJob {
  std::vector<UnitPtr> units;
  /// Indices of the units that have a choice, in the order of placing.
  std::vector<size_t> order;
  /// Result: the cost, and the device of each entry of `order`; no devices if
  /// no cap led to a placement.
  double costMs = kInfiniteMs;
  std::vector<int> devices;
  /// Result: the number of caps tried.
  int64_t evaluations = 0;
};

/// Places the units of a job one after the other on the device with the
/// smallest compute (with several device classes: the smallest after adding the
/// unit), among those with room and with dims + the unit's dims <= cap x total
/// dims / devices. Ties: less memory used, then the first device. Does so for
/// each cap and keeps the cheapest result; of equal ones that of the smallest
/// cap.
///
/// Caps that have led to the same choices so far share one run. All runs of all
/// jobs advance together, so that one batch evaluates the next unit of each.
class GreedyPlacer {
public:
  /// `caps` ascending; kNoCap: any dims.
  GreedyPlacer(const SearchContext &context, std::vector<double> caps);

  /// Jobs that are not begun before the deadline stay without devices.
  void run(std::span<GreedyJob *const> jobs) const;

private:
  const SearchContext &context;
  const std::vector<double> caps;
};

/// The caps of the published grid.
std::vector<double> gridCaps(const PublishedSettings &settings);

/// Indices of the units that have a choice: by freedomOf(), then costliest
/// first (stable).
std::vector<size_t> orderByCost(const SearchContext &context,
                                const std::vector<UnitPtr> &units);

/// The placement that a job found.
SearchState stateOf(const SearchContext &context, const GreedyJob &job);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_PLACEMENT_GREEDY_H
