//===- MoveEstimate.h - Estimate of a move's cost ---------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H

#include "PeriodEstimate.h"

#include <vector>

namespace neuroshard {

/// The cost of a board and estimates of it after a step: PeriodEstimate's, or
/// with snapshots their mean over them.
class MoveEstimate {
public:
  MoveEstimate(const Board &board, int power);

  /// Takes everything from the model; `probe` also how communication changes.
  void measure(bool probe);
  /// The objective when last measured.
  double costMs() const { return exactMs; }
  /// The energy now / after a step, estimated.
  double energyMs() const { return energy; }
  double energyAfter(const LoadChange &change) const;
  /// energyAfter(change) < limitMs, mostly without working it out.
  bool isBelow(const LoadChange &change, double limitMs) const {
    return shares.empty() ? periods.front().isBelow(change, limitMs)
                          : isMeanBelow(change, limitMs);
  }
  /// The objective after a step, exact.
  double costAfter(const LoadChange &change);
  /// Follows a step.
  void apply(const LoadChange &change);
  /// Power of two; the higher, the closer to the maximum.
  void setPower(int power);

  /// The devices that set a maximum, in any period, when last measured.
  const std::vector<int> &critical() const { return criticalDevices; }

private:
  bool isMeanBelow(const LoadChange &change, double limitMs) const;
  void takeMean();

  /// One for the problem itself when there are no snapshots.
  std::vector<PeriodEstimate> periods;
  const std::vector<double> &shares;
  double exactMs = 0;
  double energy = 0;
  std::vector<int> criticalDevices;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H
