//===- OptimizerStepSize.h - Step size of an optimizer ---------*- C++ -*-===//
//
// The factors of an update that follow from learning rate and step: the step
// size, with the correction of bias, and what decoupled weight decay keeps.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
#define NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"

#include <cmath>

namespace neuroshard::runtime {

/// `step_size` and `kept` of Runtime/KernelABI.h.
struct StepSize {
  float size = 0;
  float kept = 1;
};

/// learningRate * sqrt(1 - beta2^step) / (1 - beta1^step): Adam corrects the
/// bias of its moments by the global step, as torch.optim.SparseAdam does. The
/// learning rate for an optimizer that corrects none. Throws a RuntimeError for
/// a step less than 1 if it does, and for a rate that is not above 0 if the
/// step divides by it.
inline double correctedRate(const Optimizer &optimizer, double learningRate,
                            int64_t step) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (properties.dividesByRate && !(learningRate > 0))
    fail("the learning rate of an update by ", properties.name,
         " must be above 0, found ", learningRate);
  if (!properties.correctsBias)
    return learningRate;
  if (step < 1)
    fail("the step of an update by ", properties.name,
         " must be at least 1, found ", step);
  double count = static_cast<double>(step);
  return learningRate * std::sqrt(1.0 - std::pow(optimizer.beta2, count)) /
         (1.0 - std::pow(optimizer.beta1, count));
}

/// 1 - learningRate * decay under decoupled weight decay (torch.optim.AdamW),
/// else 1.
inline double keptShare(const Optimizer &optimizer, double learningRate) {
  if (weightDecayOf(optimizer) != WeightDecayMode::Decoupled)
    return 1;
  return 1.0 - learningRate * optimizer.weightDecay;
}

inline StepSize stepSize(const Optimizer &optimizer, float learningRate,
                         int64_t step) {
  double rate = static_cast<double>(learningRate);
  return {static_cast<float>(correctedRate(optimizer, rate, step)),
          static_cast<float>(keptShare(optimizer, rate))};
}

/// True if equal learning rates and steps give equal step sizes.
inline bool haveSameStepSize(const Optimizer &a, const Optimizer &b) {
  bool corrects = propertiesOf(a.kind).correctsBias;
  bool decays = weightDecayOf(a) == WeightDecayMode::Decoupled;
  if (corrects != propertiesOf(b.kind).correctsBias ||
      decays != (weightDecayOf(b) == WeightDecayMode::Decoupled))
    return false;
  return (!corrects || (a.beta1 == b.beta1 && a.beta2 == b.beta2)) &&
         (!decays || a.weightDecay == b.weightDecay);
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
