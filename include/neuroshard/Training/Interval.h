//===- Interval.h - Intervals of predictions --------------------*- C++ -*-===//
///
/// \file
/// Split conformal prediction (Papadopoulos and others, "Inductive confidence
/// machines for regression", 2002) on the ratio of measured to predicted times:
/// one half of the held-out samples gives the interval, the other judges it.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRAINING_INTERVAL_H
#define NEUROSHARD_TRAINING_INTERVAL_H

#include "neuroshard/Planner/PredictionInterval.h"
#include "neuroshard/Training/Split.h"

#include <array>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard {

/// The held-out samples in their order, every other to the second half. A
/// sample and its repeat stay in the same half.
std::array<std::vector<size_t>, 2> halves(std::span<const SampleRole> samples,
                                          std::span<const size_t> heldOut);

/// The 5 % and 95 % quantiles of the ratios: the next one, drawn alike, lies
/// between them in nine of ten cases or more. Of fewer than 19 the least and
/// the largest. Expects at least one.
PredictionInterval intervalOf(std::vector<double> ratios);

/// Share of the ratios in the interval; 0 of none.
double shareInside(const PredictionInterval &interval,
                   std::span<const double> ratios);

/// What a model's file states of its interval.
struct JudgedInterval {
  PredictionInterval interval;
  /// Samples that gave it, samples that judge it, and the share of their times
  /// that lies inside.
  size_t fitted = 0, judged = 0;
  double inside = 0;
};

/// ratiosOf(indices): ratios of measured to predicted times of some samples.
/// Nothing if a half is empty.
template <typename RatiosOf>
std::optional<JudgedInterval> judgeInterval(std::span<const SampleRole> samples,
                                            std::span<const size_t> heldOut,
                                            RatiosOf ratiosOf) {
  auto [fitted, judged] = halves(samples, heldOut);
  if (fitted.empty() || judged.empty())
    return std::nullopt;
  PredictionInterval interval = intervalOf(ratiosOf(fitted));
  return JudgedInterval{interval, fitted.size(), judged.size(),
                        shareInside(interval, ratiosOf(judged))};
}

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_INTERVAL_H
