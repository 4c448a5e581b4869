//===- Split.h - Training, validation and held-out samples ------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_SPLIT_H
#define NEUROSHARD_TRAINING_SPLIT_H

#include "neuroshard/Model/Diagnostics.h"

#include <cstdint>
#include <span>
#include <vector>

namespace neuroshard {

/// Indices of samples.
struct Split {
  std::vector<size_t> training;
  /// Used to decide when to stop and which weights to keep.
  std::vector<size_t> validation;
  /// Not used in training: models are judged by them.
  std::vector<size_t> heldOut;
};

/// What a split needs to know of a sample.
struct SampleRole {
  /// Index of the sample it measures again, or -1.
  int64_t repeatOf = -1;
  bool heldOut = false;
};

/// Puts the samples that are not held out in a random order (of `seed`), keeps
/// the first `limit` of them (0: all) and gives a share of them to validation.
/// A sample and its repeat stay on the same side. An error if no sample is left
/// for one of the three.
Expected<Split> splitSamples(std::span<const SampleRole> samples,
                             double validationShare, size_t limit,
                             uint64_t seed);

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_SPLIT_H
