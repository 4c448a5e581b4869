//===- TargetRules.h - Shards that a target runs, for searches --*- C++ -*-===//
///
/// \file
/// The searches' own statement of a target's rules. The verifier states them
/// again (Verify/VerifyTarget.cpp), so that an error here shows there; the unit
/// test TargetRulesTest holds both against each other.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_TARGETRULES_H
#define NEUROSHARD_LIB_PLANNER_UNITS_TARGETRULES_H

#include "neuroshard/Model/ShardingProblem.h"

#include <string>
#include <vector>

namespace neuroshard {

/// Must each device of a row-wise table get rows? Yes for TorchRec on the CPU:
/// FBGEMM's CPU kernels fail on shards without rows.
bool everyDeviceNeedsRows(const ShardingProblem &problem);

/// How many of `devices` get rows when a table is cut into blocks of
/// ceil(rows / devices).
int64_t devicesWithRows(int64_t rows, int64_t devices);

/// Must all column shards of the table have one width? Yes for TorchRec if the
/// table has a feature that is not pooled.
bool columnsMustBeEqual(const ShardingProblem &problem, int table);

/// How a target lets a table be cut.
struct TargetCuts {
  std::vector<ShardingKind> forbidden;
  int64_t minWidth = 1;
};

/// What TorchRec does not run of a table whose columns may be cut into shards
/// of `minWidth` and more.
TargetCuts torchRecCuts(const ShardingProblem &problem, int table,
                        int64_t minWidth);

/// Why the target does not run these shards, which cover the table; empty if it
/// runs them.
std::string targetObjection(const ShardingProblem &problem, int table,
                            const std::vector<const Shard *> &shards);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_TARGETRULES_H
