//===- VerifyTarget.h - A target's rules on one table -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H
#define NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <vector>

namespace neuroshard {

/// Must every device of a row-wise table have a block of it? Yes on the CPU:
/// FBGEMM's CPU kernels read a table without rows as the one after it, and fail
/// when no table has rows.
bool needsRowsEverywhere(const ShardingProblem &problem);

/// Must all column shards of the table have one width? Yes for tables without
/// pooling, since those of one module travel in one exchange of rows of that
/// width. Whether all tables of a module have the same width is not checked:
/// the plan does not say which tables form a module.
bool needsEqualColumns(const ShardingProblem &problem, const Table &table);

/// The number of devices that get a block of ceil(rows / devices) rows.
int64_t blockCount(int64_t rows, int64_t devices);

/// Errors of one table's shards under the rules of the problem's target. The
/// shards are known to cover the table.
void verifyTarget(const ShardingProblem &problem, const Table &table,
                  const std::vector<const Shard *> &shards,
                  const std::vector<int> &innerGroupOfDevice,
                  Diagnostics &errors);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_VERIFY_VERIFYTARGET_H
