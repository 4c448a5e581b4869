//===- MeasuredSet.h - Shards that are measured together --------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_MEASUREDSET_H
#define NEUROSHARD_COLLECT_MEASUREDSET_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// The shards of one device, with all that describes them. Every shard is of a
/// table of `problem`; `problem.batch.globalSize` is the batch.
struct MeasuredSet {
  ShardingProblem problem;
  std::vector<Shard> shards;
};

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_MEASUREDSET_H
