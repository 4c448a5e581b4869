//===- RelayGroups.cpp - Groups of devices with relays --------------------===//

#include "RelayGroups.h"

#include "neuroshard/Artifact/DeviceGroups.h"

using namespace neuroshard;

int neuroshard::relayGroupSize(const Topology &topology) {
  return topology.levels.empty() ? 0
                                 : static_cast<int>(commonGroupSize(
                                       topology.levels.back().groupSizes));
}

int neuroshard::relayGroupSize(const ShardingProblem &problem) {
  return problem.target == Target::Native ? relayGroupSize(problem.topology)
                                          : 0;
}
