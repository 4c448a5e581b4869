//===- RandomSteps.h - Random plans and the steps they run ------*- C++ -*-===//
//
// One plan as a world, an artifact and a planner see it, and the numbers that a
// batch brings to it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TEST_RUNTIME_RANDOMSTEPS_H
#define NEUROSHARD_TEST_RUNTIME_RANDOMSTEPS_H

#include "TestModels.h"
#include "neuroshard/Artifact/StepTraffic.h"
#include "neuroshard/Model/ShardingProblem.h"

#include <random>
#include <string>
#include <vector>

namespace neuroshard::test {

/// A model, devices and random cuts of its tables.
class RandomPlan {
public:
  explicit RandomPlan(std::mt19937 &random);

  std::mt19937 &random;
  Model model;
  int devices = 2;
  std::vector<ShardPlace> shards;
  /// Samples of each exchange: few, or so many that gradients of replicated
  /// tables travel as sums of rows.
  std::vector<int64_t> batches;

private:
  int64_t below(int64_t count);
  std::vector<int64_t> cuts(int64_t size, int64_t count);
  std::vector<int> someDevices();
  ShardPlace withCache(ShardPlace shard);
  void placeDrifting(int index);
  void place(int index);
};

/// What a planner is told of the model on devices of a class.
ShardingProblem describeProblem(const RandomPlan &plan,
                                const std::string &deviceClass);
std::vector<neuroshard::Shard> describeShards(const RandomPlan &plan);

/// The step that these batches bring to a plan.
StepLoad loadOf(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const std::vector<Batch> &batches);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_RUNTIME_RANDOMSTEPS_H
