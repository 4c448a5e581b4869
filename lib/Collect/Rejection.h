//===- Rejection.h - Rule that rejects disturbed measurements ---*- C++ -*-===//
///
/// \file
/// A sample is rejected as disturbed before any model sees it.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_COLLECT_REJECTION_H
#define NEUROSHARD_LIB_COLLECT_REJECTION_H

#include <algorithm>
#include <cmath>
#include <string>

namespace neuroshard {

/// Largest change of the reference kernel's time, and largest interquartile
/// range of the runs, as shares.
inline constexpr double kMaxReferenceChange = 0.25, kMaxSpread = 0.5;

/// The rule, as it stands in the facts of a file of samples.
inline std::string rejectionRule() {
  auto percent = [](double share) {
    return std::to_string(std::lround(100 * share)) + " %";
  };
  return "reference kernel before and after differ by more than " +
         percent(kMaxReferenceChange) +
         ", or the runs' interquartile range exceeds " + percent(kMaxSpread) +
         " of their median";
}

/// `beforeMs`, `afterMs`: times of the reference kernel before and after the
/// sample. `spread`: interquartile range of the sample's own runs, as a share
/// of their median.
inline bool isDisturbed(double beforeMs, double afterMs, double spread) {
  double change = std::max(beforeMs, afterMs) / std::min(beforeMs, afterMs) - 1;
  return change > kMaxReferenceChange || spread > kMaxSpread;
}

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COLLECT_REJECTION_H
