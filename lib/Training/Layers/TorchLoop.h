//===- TorchLoop.h - Minibatch training with early stopping -----*- C++ -*-===//
//
// Includes LibTorch, which takes seconds to compile: for the few files that
// hold networks only.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_TORCHLOOP_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_TORCHLOOP_H

#include "Dense.h"

#include <torch/types.h>

#include <functional>
#include <span>
#include <vector>

namespace neuroshard {

struct LoopOptions {
  int64_t epochs = 100;
  int64_t batch = 64;
  /// Falls from this to 1 % of it in half a cosine, after a rise over the first
  /// 2 % of the steps.
  double learningRate = 1e-3;
  bool constantRate = false;
  double weightDecay = 0;
  uint64_t seed = 1;
  /// Ends after this share of the epochs without a better validation loss.
  double patience = 0.3;
  /// Called after each epoch with the epochs done and the best loss so far.
  std::function<void(int64_t, double)> progress;
};

/// Minimises `loss` (of samples, by index below `samples`) over `parameters`
/// with AdamW (Loshchilov and Hutter, 2019). Leaves in them the values with the
/// least `validate`, looked at after each epoch, and returns that loss.
double
optimise(std::vector<torch::Tensor> &parameters, size_t samples,
         const LoopOptions &options,
         const std::function<torch::Tensor(std::span<const int64_t>)> &loss,
         const std::function<double()> &validate);

/// Weight and bias of each layer, in order, as tensors to train.
std::vector<torch::Tensor> toTensors(const DenseStack &stack);
/// The layers whose weights and biases these tensors are.
DenseStack toDense(std::span<const torch::Tensor> tensors);

/// The layers one after another, ReLU between them.
torch::Tensor applyLayers(std::span<const torch::Tensor> layers,
                          torch::Tensor input);

/// A copy as a rows x columns tensor.
torch::Tensor toMatrix(std::span<const float> values, int64_t columns);
torch::Tensor toIndex(std::span<const int64_t> values);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_TORCHLOOP_H
