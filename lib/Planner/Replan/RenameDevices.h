//===- RenameDevices.h - Devices that keep most bytes -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_REPLAN_RENAMEDEVICES_H
#define NEUROSHARD_LIB_PLANNER_REPLAN_RENAMEDEVICES_H

#include "neuroshard/Model/ShardingPlan.h"

#include <vector>

namespace neuroshard {

/// New numbers for the devices of a plan, so that as many bytes as possible
/// stay where they were. Only devices of equal class, memory and place in the
/// topology swap numbers, and none does where constraints name devices.
std::vector<int> deviceNames(const ShardingProblem &problem,
                             const ShardingPlan &previous,
                             const ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_REPLAN_RENAMEDEVICES_H
