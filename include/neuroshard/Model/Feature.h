//===- Feature.h - Inputs that read tables ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_FEATURE_H
#define NEUROSHARD_MODEL_FEATURE_H

#include "neuroshard/Model/Types.h"

#include <cstdint>
#include <string>

namespace neuroshard {

/// One input that reads a table.
struct Feature {
  std::string name;
  /// Index into ShardingProblem::tables.
  int table = 0;
  Pooling pooling = Pooling::Sum;
  /// Mean ids per present sample.
  double meanPooling = 1;
  /// Ids per sample of a batch that 99 % of batches stay below, absent samples
  /// included; 0: meanPooling x presence.
  double p99Pooling = 0;
  /// Share of samples that have the feature at all.
  double presence = 1;
  /// Global batch of this feature; 0: that of the problem.
  int64_t batch = 0;
  /// Ids carry per-sample weights / those need gradients.
  bool weighted = false;
  bool needsWeightGradient = false;

  bool operator==(const Feature &) const = default;
};

/// Ids per sample of a feature that 99 % of batches stay below.
inline double p99Pooling(const Feature &feature) {
  return feature.p99Pooling > 0 ? feature.p99Pooling
                                : feature.meanPooling * feature.presence;
}

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_FEATURE_H
