//===- OptimizerStepSize.h - Step size of an optimizer ---------*- C++ -*-===//
//
// The factor of an update: the learning rate, with Adam's correction of bias.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
#define NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"

#include <cmath>

namespace neuroshard::runtime {

/// Adam corrects the bias of its moments by the global step (torch.optim.
/// SparseAdam); the other optimizers take the learning rate. Throws a
/// RuntimeError if Adam's step is less than 1.
inline float stepSize(const Optimizer &optimizer, float learningRate,
                      int64_t step) {
  if (optimizer.kind != OptimizerKind::Adam)
    return learningRate;
  if (step < 1)
    fail("the step of an Adam update must be at least 1, found ", step);
  double correction1 =
      1.0 - std::pow(optimizer.beta1, static_cast<double>(step));
  double correction2 =
      1.0 - std::pow(optimizer.beta2, static_cast<double>(step));
  return static_cast<float>(static_cast<double>(learningRate) *
                            std::sqrt(correction2) / correction1);
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
