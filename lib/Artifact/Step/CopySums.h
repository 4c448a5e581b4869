//===- CopySums.h - Sums that copies of shards exchange ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_ARTIFACT_STEP_COPYSUMS_H
#define NEUROSHARD_LIB_ARTIFACT_STEP_COPYSUMS_H

#include "NormCounts.h"
#include "neuroshard/Artifact/CopyMessage.h"

#include <vector>

namespace neuroshard {

/// A copied shard in a step: the rows that each copy has gradients of.
struct CopiedRows {
  const ShardSpec *shard;
  CopyMessage message;
  std::vector<Readers> readers; ///< of each copy, as the rows.
  std::vector<int64_t> rows;
  int64_t allRows = 0; ///< the sum.
};

/// Of each trained shard with copies that some lookup reads, in the order of
/// the plan.
std::vector<CopiedRows> copiedRows(const ExchangePlan &plan,
                                   const StepLoad &load);

/// Calls `add` for the sums that copies send each other, and themselves.
void countCopySums(const ExchangePlan &plan, const StepLoad &load,
                   const PairReceiver &add);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_STEP_COPYSUMS_H
