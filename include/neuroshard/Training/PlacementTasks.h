//===- PlacementTasks.h - Random tasks for placement policies ---*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_PLACEMENTTASKS_H
#define NEUROSHARD_TRAINING_PLACEMENTTASKS_H

#include "neuroshard/Planner/CostModel.h"
#include "neuroshard/Planner/Objective.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace neuroshard {

/// Ranges that random tasks are drawn from.
struct PlacementTaskSettings {
  /// Log-uniform.
  int minTables = 10, maxTables = 120;
  int minDevices = 2, maxDevices = 16;
  /// Weights fill a share of the devices' memory between these.
  double minFill = 0.2, maxFill = 0.8;
  /// Cost models to draw from, by name (see makeCostModel). A model with one
  /// number for forward and backward gets the objective `published`, others
  /// either.
  std::vector<std::string> costModels = {"roofline", "reference"};
};

/// A task with the cost model and the objective of its plans.
struct PlacementExample {
  ShardingProblem problem;
  std::unique_ptr<CostModel> model;
  ObjectiveOptions objective;
};

/// Errors unless 1 <= min <= max for tables and devices, 0 < min <= max <= 1
/// for the fill, and there is a cost model.
Diagnostics check(const PlacementTaskSettings &settings);

/// A random example, the same for the same arguments on every machine. Rows are
/// log-uniform in 100 ... 10 million, dims 4 to 128, poolings log-normal around
/// 1 ... 20; no table takes more than 90 % of a device; a third have two nodes.
Expected<PlacementExample>
randomPlacementExample(const PlacementTaskSettings &settings, uint64_t seed);

/// Those of `count` seeds, from `seed` on.
Expected<std::vector<PlacementExample>>
randomPlacementExamples(const PlacementTaskSettings &settings, uint64_t seed,
                        int count);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_PLACEMENTTASKS_H
