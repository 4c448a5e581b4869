//===- ReplicaGradients.h - Form of the gradients of copies -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAGRADIENTS_H
#define NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAGRADIENTS_H

#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// How the copies of a table exchange the gradients of a step
/// (Artifact/ReplicaUpdate.h).
struct ReplicaGradients {
  /// Ids and gradients of all ranks.
  int64_t gatheredBytes = 0;
  /// Whether sums of rows travel in their place.
  bool areSummed = false;
};

/// `features`: all of the table; `idsOf`: the ids of one on all ranks.
ReplicaGradients
replicaGradients(const ShardingProblem &problem, const Table &table,
                 const std::vector<int> &features,
                 const std::function<int64_t(const Feature &)> &idsOf);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_MEMORY_REPLICAGRADIENTS_H
