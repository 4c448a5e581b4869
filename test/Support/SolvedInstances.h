//===- SolvedInstances.h - Small problems and their optima ------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_SUPPORT_SOLVEDINSTANCES_H
#define NEUROSHARD_TEST_SUPPORT_SOLVEDINSTANCES_H

#include "neuroshard/Planner/Objective.h"

#include <cstdint>

namespace neuroshard {

/// At most 6 tables of dim 4 to 16 on 2 or 3 devices, the same for the same
/// seed. `columnsOnly`: tables may be whole or cut by columns, nothing else.
ShardingProblem solvableInstance(uint64_t seed, bool columnsOnly);

/// The lowest cost of all plans of whole and column-cut tables, by trying every
/// one; memory is taken to suffice.
double optimumMs(const ShardingProblem &problem, const CostModel &model,
                 const ObjectiveOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TEST_SUPPORT_SOLVEDINSTANCES_H
