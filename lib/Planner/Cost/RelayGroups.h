//===- RelayGroups.h - Groups of devices with relays -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_RELAYGROUPS_H
#define NEUROSHARD_LIB_PLANNER_COST_RELAYGROUPS_H

#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

/// Devices of each innermost group, if there are several of one size; else 0.
int relayGroupSize(const Topology &topology);
/// The same, where relays serve them; 0: the problem's plans have none.
int relayGroupSize(const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_RELAYGROUPS_H
