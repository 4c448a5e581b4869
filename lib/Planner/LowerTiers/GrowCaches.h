//===- GrowCaches.h - Gives memory that is left to row caches ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_GROWCACHES_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_GROWCACHES_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

/// Gives the memory that a plan leaves free on each device to the caches of its
/// shards, part by part where it saves most time of fetches; shards whose
/// caches would have all rows move to device memory. Caches that the problem
/// sizes (constraints, shards written by hand) stay as they are.
void growCaches(const ShardingProblem &problem, ShardingPlan &plan);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_GROWCACHES_H
