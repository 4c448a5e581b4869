//===- Verify.h - Every rule a plan must follow -----------------*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_VERIFY_H
#define NEUROSHARD_PLANNER_VERIFY_H

#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

/// Everything wrong with `plan` as an answer to `problem`; empty when valid.
/// Shares no code with any search and trusts nothing in the plan. Expects a
/// problem for which check() finds nothing.
///
/// Checked: each table covered exactly once; ranges inside the table; inner
/// column boundaries multiples of 4; devices and tiers that exist; memory per
/// device and host; pins, forbids, co-location, separation, allowed kinds,
/// minimum widths, fixed shards; the rules of the target. Near-linear in
/// shards + devices.
Diagnostics verify(const ShardingPlan &plan, const ShardingProblem &problem);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_VERIFY_H
