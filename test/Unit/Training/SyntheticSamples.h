//===- SyntheticSamples.h - Made-up measurements of shard sets --*- C++ -*-===//

#ifndef NEUROSHARD_TEST_TRAINING_SYNTHETICSAMPLES_H
#define NEUROSHARD_TEST_TRAINING_SYNTHETICSAMPLES_H

#include "neuroshard/CostModel/ComputeSamples.h"

namespace neuroshard::test {

struct SyntheticOptions {
  int count = 400;
  int heldOut = 100;
  /// Held-out samples that are measured again.
  int repeats = 40;
  /// Relative standard deviation of the made-up measurement.
  double noise = 0.03;
  /// All times are multiplied by this: another machine.
  double slowness = 1;
  uint64_t seed = 7;
};

/// Sets of 1 to 10 random shards with times of the roofline, bent by effects it
/// does not know: a cost per id, cheaper small tables, dearer wide optimizers.
/// Held-out samples use tables of their own.
ComputeSamples makeSyntheticSamples(const SyntheticOptions &options);

} // namespace neuroshard::test

#endif // NEUROSHARD_TEST_TRAINING_SYNTHETICSAMPLES_H
