//===- PredictionInterval.h - 90 % interval of a predicted time -*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_PREDICTIONINTERVAL_H
#define NEUROSHARD_PLANNER_PREDICTIONINTERVAL_H

namespace neuroshard {

/// Between these multiples of its predicted time lie nine of ten measured
/// times. Both 0: not known.
struct PredictionInterval {
  double low = 0;
  double high = 0;

  bool isKnown() const { return high > 0; }
  bool operator==(const PredictionInterval &) const = default;
};

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_PREDICTIONINTERVAL_H
