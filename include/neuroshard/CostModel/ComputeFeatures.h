//===- ComputeFeatures.h - Features of a shard ------------------*- C++ -*-===//
///
/// \file
/// The one list of features. A model file stores their names; a file with other
/// names is refused. A feature that is redefined needs a new name, so that
/// models trained on the old one are refused rather than wrong.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_COMPUTEFEATURES_H
#define NEUROSHARD_COSTMODEL_COMPUTEFEATURES_H

#include "neuroshard/Planner/CostModel.h"

#include <array>
#include <span>
#include <string>
#include <string_view>

namespace neuroshard {

inline constexpr int kFeatureCount = 64;

/// The optimizers that features tell apart, which models were trained on.
inline constexpr std::array kPricedOptimizers = {
    OptimizerKind::SGD, OptimizerKind::Adagrad, OptimizerKind::RowWiseAdagrad,
    OptimizerKind::Adam};

/// The one of them whose states are most alike, by which another optimizer is
/// priced. Features of bytes count its own states.
OptimizerKind pricedAs(OptimizerKind kind);

/// kFeatureCount names. Those that begin with "log_" are log(1 + count).
std::span<const std::string_view> featureNames();

/// Writes kFeatureCount finite numbers of the order of 1 to 30. The published
/// 20 (reuse histogram, width, pooling, rows) are among them.
void featurize(const ShardWork &shard, std::span<float> out);

/// Whether the time of a large shard grows in proportion to the feature: ids,
/// result rows, bytes moved.
bool countsWork(int feature);

/// A feature's value as a person reads it: counts instead of their logarithms,
/// such as "4.2e+07".
std::string featureValueText(int feature, double value);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_COMPUTEFEATURES_H
