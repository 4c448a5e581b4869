//===- FitOptions.h - Settings of the training of a network -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_FITOPTIONS_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_FITOPTIONS_H

#include <cstdint>
#include <functional>

namespace neuroshard {

struct FitOptions {
  int64_t epochs = 0;
  int64_t batch = 0;
  /// Falls from this to 1 % of it in half a cosine, after a rise over the first
  /// 2 % of the steps.
  double learningRate = 0;
  bool constantRate = false;
  double weightDecay = 0;
  uint64_t seed = 1;
  /// Called after each epoch with the epochs done and the best validation loss.
  std::function<void(int64_t, double)> progress;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_FITOPTIONS_H
