//===- PlacementEvaluation.h - Policies against planners --------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_PLACEMENTEVALUATION_H
#define NEUROSHARD_TRAINING_PLACEMENTEVALUATION_H

#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Training/PlacementTasks.h"

#include <functional>
#include <string>
#include <vector>

namespace neuroshard {

struct PlacementEvaluationOptions {
  PlacementTaskSettings tasks;
  uint64_t seed = 1;
  int count = 100;
  /// Episodes of the entry that samples devices from the policy.
  int samples = 32;
  /// Does not change the result.
  int threads = 2;
};

/// The policy against one planner, over all tasks.
struct PlacementComparison {
  std::string planner;
  /// Tasks without a plan.
  int missing = 0;
  /// Over the tasks for which both have a plan: how many, geometric mean of the
  /// policy's cost over this planner's, and on how many tasks the policy is
  /// cheaper / costs the same.
  int both = 0;
  double ratio = 1;
  int cheaper = 0, equal = 0;
};

/// Compares, in this order: the policy with the best device in each step; the
/// policy with sampled episodes; random placement; the greedy baselines; the
/// best of these on each task; greedy placement by predicted cost (the
/// published search without splits); the default search where no table may be
/// cut or copied; the published search; the default search. All but the last
/// two place whole tables. No task has a seed that training
/// draws.
Expected<std::vector<PlacementComparison>>
evaluatePlacement(const PlacementPolicy &policy,
                  const PlacementEvaluationOptions &options);

/// A markdown table.
std::string toMarkdown(const std::vector<PlacementComparison> &comparisons);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTEVALUATION_H
