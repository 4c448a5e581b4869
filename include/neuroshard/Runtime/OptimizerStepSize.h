//===- OptimizerStepSize.h - Step size of an optimizer ---------*- C++ -*-===//
//
// What of an update follows from learning rate and step: the step size, with
// the correction of bias, what decoupled weight decay keeps, and the seed of
// stochastic rounding.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
#define NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H

#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Support/Random.h"

#include <cmath>
#include <cstdint>

namespace neuroshard::runtime {

/// `step_size`, `kept` and `seed` of Runtime/KernelABI.h.
struct StepSize {
  float size = 0;
  float kept = 1;
  uint32_t seed = 0;

  bool operator==(const StepSize &) const = default;
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

/// The same for all optimizers that round at random, so that it depends on no
/// plan; else 0.
inline uint32_t roundingSeed(const Optimizer &optimizer, int64_t step) {
  return optimizer.stochasticRounding
             ? static_cast<uint32_t>(
                   SplitMix64(static_cast<uint64_t>(step)).next())
             : 0;
}

inline StepSize stepSize(const Optimizer &optimizer, float learningRate,
                         int64_t step) {
  double rate = static_cast<double>(learningRate);
  return {static_cast<float>(correctedRate(optimizer, rate, step)),
          static_cast<float>(keptShare(optimizer, rate)),
          roundingSeed(optimizer, step)};
}

/// True if equal learning rates and steps give equal step sizes.
inline bool haveSameStepSize(const Optimizer &a, const Optimizer &b) {
  bool corrects = propertiesOf(a.kind).correctsBias;
  bool decays = weightDecayOf(a) == WeightDecayMode::Decoupled;
  if (corrects != propertiesOf(b.kind).correctsBias ||
      a.stochasticRounding != b.stochasticRounding ||
      decays != (weightDecayOf(b) == WeightDecayMode::Decoupled))
    return false;
  return (!corrects || (a.beta1 == b.beta1 && a.beta2 == b.beta2)) &&
         (!decays || a.weightDecay == b.weightDecay);
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
