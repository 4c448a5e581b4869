//===- Assumptions.h - Default values that a prediction uses ----*- C++ -*-===//

#ifndef NEUROSHARD_PLANNER_ASSUMPTIONS_H
#define NEUROSHARD_PLANNER_ASSUMPTIONS_H

#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/Objective.h"

#include <string>
#include <string_view>
#include <vector>

namespace neuroshard {

/// A number that the problem does not say, and what stands in its place.
struct Assumption {
  /// "pooling", "peak pooling", "access", "memory", "links", "reserves",
  /// "device class", "dense".
  std::string_view about;
  /// One sentence: what was assumed, of how many, and what measures it.
  std::string text;
};

/// What the prediction of a plan's cost and memory assumes because the problem
/// says nothing. The topology must be sound.
std::vector<Assumption> assumptionsOf(const ShardingProblem &problem,
                                      const ObjectiveOptions &objective);

} // namespace neuroshard

#endif // NEUROSHARD_PLANNER_ASSUMPTIONS_H
