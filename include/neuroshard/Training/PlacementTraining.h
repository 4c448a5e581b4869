//===- PlacementTraining.h - Trains policies by REINFORCE -------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_PLACEMENTTRAINING_H
#define NEUROSHARD_TRAINING_PLACEMENTTRAINING_H

#include "neuroshard/CostModel/PlacementPolicy.h"
#include "neuroshard/Training/PlacementTasks.h"

#include <functional>
#include <span>
#include <vector>

namespace neuroshard {

/// A point of the learning curve.
struct PlacementCurvePoint {
  int iteration = 0;
  int64_t episodes = 0;
  /// Entropy of a choice while learning, in shares of chance alone.
  double entropy = 0;
  /// On the validation tasks, with the best device of each step: the geometric
  /// mean of the cost over that of the best of the greedy baselines, and the
  /// tasks without a placement, which count as kMissingRatio.
  double validationRatio = 0;
  int missing = 0;
};

inline constexpr double kMissingRatio = 2;

struct PlacementTrainingOptions {
  PlacementTaskSettings tasks;
  uint64_t seed = 1;
  /// Each on fresh tasks, each of which is played several times by chance.
  int iterations = 2000;
  int tasksPerIteration = 8;
  int episodesPerTask = 10;
  /// Falls to 5 % of it in half a cosine.
  double learningRate = 2e-3;
  /// Weight of the entropy; falls to 0 linearly.
  double entropyWeight = 0.01;
  /// The weights that do best on these tasks, looked at every so many
  /// iterations, are kept.
  int validationTasks = 120;
  int validateEvery = 50;
  /// Does not change the result.
  int threads = 2;
  /// Called with each point of the curve.
  std::function<void(const PlacementCurvePoint &)> progress;
};

Diagnostics check(const PlacementTrainingOptions &options);

struct TrainedPlacement {
  /// The card is left empty.
  PlacementPolicyParameters parameters;
  std::vector<PlacementCurvePoint> curve;
};

/// Trains a policy by REINFORCE with the other episodes of a task as the
/// baseline. The same options give the same policy.
Expected<TrainedPlacement>
trainPlacement(const PlacementTrainingOptions &options);

/// What LibTorch and the plain C++ inference say about the same steps: the
/// largest difference of two scores on some episodes by chance of each task.
double largestScoreDifference(const PlacementPolicyParameters &parameters,
                              std::span<const PlacementExample> examples);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTTRAINING_H
