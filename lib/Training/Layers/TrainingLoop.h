//===- TrainingLoop.h - Minibatch training with early stopping --*- C++ -*-===//
//
// Includes LibTorch, which takes seconds to compile: for the few files that
// hold networks only.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_TRAININGLOOP_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_TRAININGLOOP_H

#include "Dense.h"
#include "FitOptions.h"

#include <torch/types.h>

#include <functional>
#include <span>
#include <vector>

namespace neuroshard {

/// Minimises `loss` (of samples, by index below `samples`) over `parameters`
/// with AdamW (Loshchilov and Hutter, 2019). Ends early when `validate` has not
/// fallen for a while. Leaves in them the values with the
/// least `validate`, looked at after each epoch, and returns that loss.
double
optimise(std::vector<torch::Tensor> &parameters, size_t samples,
         const FitOptions &options,
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

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_TRAININGLOOP_H
