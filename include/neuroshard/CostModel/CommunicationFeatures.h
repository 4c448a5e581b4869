//===- CommunicationFeatures.h - Features of an exchange --------*- C++ -*-===//
///
/// \file
/// The one list of features of exchanges. A model file stores their names; a
/// file with other names is refused.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_COSTMODEL_COMMUNICATIONFEATURES_H
#define NEUROSHARD_COSTMODEL_COMMUNICATIONFEATURES_H

#include "neuroshard/Planner/CostModel.h"

#include <span>
#include <string_view>
#include <vector>

namespace neuroshard {

/// Levels of a topology that have features of their own, counted from the
/// innermost.
inline constexpr int kFeatureLevels = 3;
/// Per device: bytes, their shares, wait for the last starter, closed form.
inline constexpr int kDeviceFeatureCount = 13;
/// Per exchange: devices, levels and their links, direction, total bytes.
inline constexpr int kExchangeFeatureCount = 7 + 4 * kFeatureLevels;

std::span<const std::string_view> deviceFeatureNames();
std::span<const std::string_view> exchangeFeatureNames();

/// One exchange among D devices. A device's features depend on the others only
/// through sums of whole bytes and maxima, so that renumbering the devices
/// within their groups permutes the features and changes none.
struct CommunicationFeatures {
  /// [D, kDeviceFeatureCount], row-major.
  std::vector<float> device;
  /// [kExchangeFeatureCount].
  std::vector<float> exchange;
  /// [D]: innermost group of each device, and how many groups there are.
  std::vector<int> group;
  int groupCount = 0;
  /// [D]: the roofline's time of the links; the wait for the last starter.
  std::vector<double> closedFormMs;
  std::vector<double> waitMs;

  size_t deviceCount() const { return group.size(); }
};

/// `levels` are those of the traffic's topology, possibly with other figures.
/// `startSkewsMs`: see CostModel::communicationMs.
CommunicationFeatures featurizeExchange(const Traffic &traffic,
                                        std::span<const TopologyLevel> levels,
                                        std::span<const double> startSkewsMs,
                                        Direction direction);

} // namespace neuroshard

#endif // NEUROSHARD_COSTMODEL_COMMUNICATIONFEATURES_H
