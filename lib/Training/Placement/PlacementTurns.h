//===- PlacementTurns.h - Turns of measuring and learning costs -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTTURNS_H
#define NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTTURNS_H

#include "CostNetworks.h"

#include "neuroshard/Planner/PlacementPolicy.h"
#include "neuroshard/Training/PlacementTurns.h"

#include <span>

namespace neuroshard {

/// The first two of the three steps of a turn of DreamShard's algorithm 1:
/// plans of the policy are measured, and the cost networks learn from all
/// plans so far.
class PlacementTurns {
public:
  /// `tableScale`: of the features of tables. The settings must outlive it.
  PlacementTurns(const PlacementTaskSettings &tasks,
                 const PlacementTurnSettings &settings, uint64_t seed,
                 int threads, FeatureScale tableScale);

  /// Without a policy all devices are equally likely.
  Expected<PlacementTurn> take(const PlacementPolicy *policy);
  /// Replaces the tasks' cost models, of those that measure, by the networks.
  void estimate(std::span<PlacementExample> examples) const;

private:
  const PlacementTaskSettings &tasks;
  const PlacementTurnSettings &settings;
  const uint64_t seed;
  const int threads;
  CostNetworks networks;
  int turns = 0;
  int64_t plans = 0;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_PLACEMENT_PLACEMENTTURNS_H
