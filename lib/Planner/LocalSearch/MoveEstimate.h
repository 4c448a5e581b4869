//===- MoveEstimate.h - Estimate of the cost after an edit ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H

#include "EnergyEstimate.h"

#include <vector>

namespace neuroshard {

/// The cost of a board and estimates of it after an edit: those of one
/// EnergyEstimate or, with snapshots, the mean over one for each.
class MoveEstimate {
public:
  MoveEstimate(const Board &board, int power);

  /// Measures the board with the model; `probe`: also how communication changes
  /// with the loads.
  void measure(bool probe);
  /// The objective when last measured.
  double costMs() const { return exactMs; }
  /// The energy now / its estimate after an edit.
  double energyMs() const { return energy; }
  double energyAfter(const LoadChange &change) const;
  /// energyAfter(change) < limitMs, usually decided by cheap bounds.
  bool isBelow(const LoadChange &change, double limitMs) const {
    return shares.empty() ? periods.front().isBelow(change, limitMs)
                          : isMeanBelow(change, limitMs);
  }
  /// The exact objective after an edit.
  double costAfter(const LoadChange &change);
  /// Follows an edit.
  void apply(const LoadChange &change);
  /// Sets the power of the p-norm, a power of two; the higher, the closer the
  /// norm is to the maximum.
  void setPower(int power);

  /// The devices with one of the maxima of any period, when last measured.
  const std::vector<int> &critical() const { return criticalDevices; }

private:
  bool isMeanBelow(const LoadChange &change, double limitMs) const;
  void takeMean();

  /// One per snapshot; without snapshots one of the problem itself.
  std::vector<EnergyEstimate> periods;
  const std::vector<double> &shares;
  double exactMs = 0;
  double energy = 0;
  std::vector<int> criticalDevices;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEESTIMATE_H
