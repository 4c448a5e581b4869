//===- Metrics.h - Relative error and Kendall's tau -------------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_METRICS_H
#define NEUROSHARD_TRAINING_METRICS_H

#include <span>

namespace neuroshard {

/// Mean of |predicted - measured| / measured; 0 for no values. The spans have
/// the same size; measured values are positive.
double meanRelativeError(std::span<const double> predicted,
                         std::span<const double> measured);

/// Kendall's tau-b between two rankings of the same things: 1 for the same
/// order, -1 for the opposite, 0 where one side is all ties. O(n log n)
/// (Knight, "A computer method for calculating Kendall's tau with ungrouped
/// data", 1966).
double kendallTau(std::span<const double> a, std::span<const double> b);

/// Of two measurements of the same things: the mean of |a - b| / ((a + b) / 2).
double meanRelativeDifference(std::span<const double> a,
                              std::span<const double> b);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_METRICS_H
