//===- PlacementTraining.h - Trains policies by REINFORCE -------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_PLACEMENTTRAINING_H
#define NEUROSHARD_TRAINING_PLACEMENTTRAINING_H

#include "neuroshard/CostModel/NeuralPolicy.h"
#include "neuroshard/Training/PlacementTasks.h"
#include "neuroshard/Training/PlacementTurns.h"

#include <functional>
#include <span>
#include <vector>

namespace neuroshard {

/// A point of the learning curve.
struct PlacementCurvePoint {
  int iteration = 0;
  int64_t episodes = 0;
  /// Mean entropy of a choice while learning, relative to a uniform choice.
  double entropy = 0;
  /// On the validation tasks, with the best device in each step: geometric mean
  /// of the cost over that of the best greedy baseline, where tasks without a
  /// placement count as kMissingRatio; and the number of such tasks.
  double validationRatio = 0;
  int missing = 0;
};

inline constexpr double kMissingRatio = 2;

struct PlacementTrainingOptions {
  PlacementTaskSettings tasks;
  uint64_t seed = 1;
  /// Each draws new tasks and several random episodes of each task.
  int iterations = 2000;
  int tasksPerIteration = 8;
  int episodesPerTask = 10;
  /// The initial rate, which falls to 5 % of it along half a cosine.
  double learningRate = 2e-3;
  /// The initial weight of the entropy, which falls linearly to 0.
  double entropyWeight = 0.01;
  /// Tasks on which the policy is judged every `validateEvery` iterations; the
  /// best weights are kept; with turns, the last.
  int validationTasks = 120;
  int validateEvery = 50;
  PlacementTurnSettings costNetwork;
  /// Does not change the result.
  int threads = 2;
  /// Called with each point of the curve.
  std::function<void(const PlacementCurvePoint &)> progress;
  std::function<void(const PlacementTurn &)> turnProgress;
};

Diagnostics check(const PlacementTrainingOptions &options);

struct TrainedPlacement {
  /// The card is left empty.
  PlacementPolicyParameters parameters;
  std::vector<PlacementCurvePoint> curve;
  std::vector<PlacementTurn> turns;
};

/// Trains a policy by REINFORCE with the other episodes of a task as the
/// baseline. The same options give the same policy.
Expected<TrainedPlacement>
trainPlacement(const PlacementTrainingOptions &options);

/// The largest difference between a score of LibTorch and of the inference,
/// over random episodes of each task.
double largestScoreDifference(const PlacementPolicyParameters &parameters,
                              std::span<const PlacementExample> examples);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTTRAINING_H
