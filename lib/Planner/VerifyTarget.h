//===- VerifyTarget.h - What an executor can run ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_VERIFYTARGET_H
#define NEUROSHARD_LIB_PLANNER_VERIFYTARGET_H

#include "neuroshard/Planner/Diagnostics.h"
#include "neuroshard/Planner/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// The rules of the problem's target for one table's shards, which are sound
/// and cover it.
void verifyTarget(const ShardingProblem &problem, const Table &table,
                  const std::vector<const Shard *> &shards,
                  const std::vector<int> &innerGroupOfDevice,
                  Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_VERIFYTARGET_H
