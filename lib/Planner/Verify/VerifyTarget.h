//===- VerifyTarget.h - A target's rules on one table -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H
#define NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// Must every device of a row-wise table have a block of it? On the CPU:
/// FBGEMM's kernels there take a table without rows for the one after it, and
/// fail when no table has rows.
bool needsRowsEverywhere(const ShardingProblem &problem);

/// Must all column shards of the table have one width? Those of a module's
/// tables without pooling travel in one exchange of rows of that width. That it
/// is the same in all these tables is not checked here: nothing says which
/// tables are one module's.
bool needsEqualColumns(const ShardingProblem &problem, const Table &table);

/// How many devices blocks of ceil(rows / devices) rows give one.
int64_t blockCount(int64_t rows, int64_t devices);

/// The rules of the problem's target for one table's shards, which are sound
/// and cover it.
void verifyTarget(const ShardingProblem &problem, const Table &table,
                  const std::vector<const Shard *> &shards,
                  const std::vector<int> &innerGroupOfDevice,
                  Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H
