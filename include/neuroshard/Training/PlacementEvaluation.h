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
  /// Episodes by chance of the policy's second entry.
  int samples = 32;
  /// Does not change the result.
  int threads = 2;
};

/// One planner over all tasks.
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

/// The policy, the best device of each step, first; then with episodes by
/// chance; random, the greedy baselines, the best of these on each task; the
/// greedy placement by predicted cost (the published search without splits);
/// the published search; the default one. Whole tables, except for the last
/// two. Tasks of training seeds do not occur.
Expected<std::vector<PlacementComparison>>
evaluatePlacement(const PlacementPolicy &policy,
                  const PlacementEvaluationOptions &options);

/// A markdown table.
std::string toMarkdown(const std::vector<PlacementComparison> &comparisons);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTEVALUATION_H
