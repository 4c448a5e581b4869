//===- PlacementTurns.h - Turns of learning costs and policy ----*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_PLACEMENTTURNS_H
#define NEUROSHARD_TRAINING_PLACEMENTTURNS_H

#include <cstdint>

namespace neuroshard {

/// A cost network that is trained along with a policy.
struct PlacementTurnSettings {
  /// 0: the tasks' cost models are the estimated MDP. Otherwise the network is,
  /// in so many turns: plans of the policy are measured by the tasks' cost
  /// models, the network learns from all plans so far, then the policy from the
  /// network, in its share of the iterations.
  int turns = 0;
  /// Each of a new task.
  int plansPerTurn = 50;
  /// Steps of the cost network in a turn, and their initial rate.
  int costSteps = 300;
  double costLearningRate = 1e-3;
};

struct PlacementTurn {
  /// From 1.
  int turn = 0;
  /// Measured so far.
  int64_t plans = 0;
  /// Mean over the turn's plans, before they were learnt from, of
  /// |log(predicted / measured cost)|. In the first turn the roofline predicts.
  double costError = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTTURNS_H
