//===- Loss.cpp - The loss of networks that predict times -----------------===//

#include "Loss.h"

#include <torch/nn/functional/loss.h>

torch::Tensor neuroshard::logarithmicLoss(const torch::Tensor &predicted,
                                          const torch::Tensor &measured) {
  constexpr double kQuadraticBelow = 0.05;
  return torch::smooth_l1_loss(predicted, measured, at::Reduction::Mean,
                               kQuadraticBelow);
}
