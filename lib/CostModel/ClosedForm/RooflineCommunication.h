//===- RooflineCommunication.h - Latency + bytes / bandwidth ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_ROOFLINECOMMUNICATION_H
#define NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_ROOFLINECOMMUNICATION_H

#include "neuroshard/Planner/CostModel.h"

#include <span>
#include <vector>

namespace neuroshard {

/// Time of an all-to-all per device: the slowest level of the topology, each
/// with its latency and the larger of the bytes out and in that cross it. Where
/// a group shares a link, each of its devices waits for the bytes of all.
std::vector<double> linkTimesMs(const Traffic &traffic);

/// CostModel::arrivalsMs(), with links that are as much slower as `evenMs`
/// says. A link is busy while a device that has started has bytes for it, and
/// those of a group share theirs fairly, so that the least ends first. Results
/// come from all, and so with the last of them; of ids and gradients a device
/// waits for its own.
std::vector<double> linkArrivalsMs(const Traffic &traffic,
                                   std::span<const double> startsMs,
                                   double evenMs, Direction direction);

/// The times of each level by itself: [levels, devices]. `levels` may be those
/// of the topology with other figures.
std::vector<double> levelTimesMs(const Traffic &traffic,
                                 std::span<const TopologyLevel> levels);

/// The largest over the levels: [devices].
std::vector<double> slowestLevelMs(std::span<const double> levelMs,
                                   size_t devices);

/// Lower bound of the largest time of an exchange of `totalBytes` over all
/// owners.
double linkBoundMs(const Topology &topology, double totalBytes);

/// Lower bound of the mean over the devices of the time that a device's bytes
/// take over its own link.
double ownLinkBoundMs(const Topology &topology, double totalBytes);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_CLOSEDFORM_ROOFLINECOMMUNICATION_H
