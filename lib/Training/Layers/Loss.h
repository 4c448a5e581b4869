//===- Loss.h - The loss of networks that predict times ---------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRAINING_LAYERS_LOSS_H
#define NEUROSHARD_LIB_TRAINING_LAYERS_LOSS_H

#include <torch/types.h>

namespace neuroshard {

/// The mean over |log(predicted / measured)|, quadratic below 0.05 and linear
/// above (torch's smooth L1), so that a few bad measurements do not lead. Both
/// tensors hold logarithms and have one shape.
torch::Tensor logarithmicLoss(const torch::Tensor &predicted,
                              const torch::Tensor &measured);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRAINING_LAYERS_LOSS_H
