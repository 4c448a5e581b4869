//===- Options.h - Options and progress of training -------------*- C++ -*-===//

#ifndef NEUROSHARD_TRAINING_OPTIONS_H
#define NEUROSHARD_TRAINING_OPTIONS_H

#include <cstdint>
#include <functional>

namespace neuroshard {

/// Progress of a training run.
struct TrainingProgress {
  int member = 0;
  int members = 0;
  int64_t epoch = 0;
  int64_t epochs = 0;
  /// The best so far on the validation samples: about the mean relative error.
  double validationLoss = 0;
};

struct TrainingOptions {
  /// Networks trained from different seeds; the model is their mean.
  int members = 4;
  uint64_t seed = 1;
  /// Passes over the training samples; more if these make fewer than `minSteps`
  /// steps.
  int64_t epochs = 300;
  int64_t minSteps = 2000;
  /// Samples in a step.
  int64_t batch = 64;
  double learningRate = 3e-3;
  double weightDecay = 0.03;
  /// Members trained at once.
  int threads = 2;
  /// Called after each epoch, never by two threads at once.
  std::function<void(const TrainingProgress &)> progress;
};

} // namespace neuroshard

#endif // NEUROSHARD_TRAINING_OPTIONS_H
