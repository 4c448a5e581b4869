//===- Requests.h - Checks of what Python asks the planner ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PYTHON_REQUESTS_H
#define NEUROSHARD_LIB_PYTHON_REQUESTS_H

#include "CostModelHandle.h"

#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Planner/Search.h"

#include <memory>
#include <string_view>

namespace neuroshard::python {

/// Parses options. Raises a ValueError that lists all errors. `policy`: where
/// the placement policy goes that they name, if they need one.
SearchOptions readOptions(std::string_view json,
                          std::unique_ptr<PlacementPolicy> *policy = nullptr);

/// Raises a CostModelError unless the model serves the objective.
void requireServing(const ShardingProblem &problem,
                    const CostModelHandle &model,
                    const ObjectiveOptions &objective);

/// Raises an InvalidPlan unless the plan answers the problem.
void requireValid(const ShardingProblem &problem, const ShardingPlan &plan);

} // namespace neuroshard::python

#endif // NEUROSHARD_LIB_PYTHON_REQUESTS_H
