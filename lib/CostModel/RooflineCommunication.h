//===- RooflineCommunication.h - Latency + bytes / bandwidth ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_COSTMODEL_ROOFLINECOMMUNICATION_H
#define NEUROSHARD_LIB_COSTMODEL_ROOFLINECOMMUNICATION_H

#include "neuroshard/Planner/CostModel.h"

#include <vector>

namespace neuroshard {

/// Time of an all-to-all per device: the slowest level of the topology, each
/// with its latency and the larger of the bytes out and in that cross it.
std::vector<double> linkTimesMs(const Traffic &traffic);

/// No exchange of `totalBytes` (over all owners) has a smaller largest time.
double linkBoundMs(const Topology &topology, double totalBytes);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_COSTMODEL_ROOFLINECOMMUNICATION_H
