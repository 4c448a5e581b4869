//===- OptimizerStepSize.h - Step size of an optimizer ---------*- C++ -*-===//
//
// What of an update follows from learning rate and step: the step size, with
// the correction of bias, what decoupled weight decay keeps, the seed of
// stochastic rounding, and factors of moments.
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

/// `step_size`, `kept`, `seed`, `first`, `second`, `step` and `history` of
/// Runtime/KernelABI.h; the last two of an optimizer that catches up are those
/// of the device.
struct StepSize {
  float size = 0;
  float kept = 1;
  uint32_t seed = 0;
  float first = 1;
  float second = 1;
  float step = 0;
  const float *history = nullptr; ///< in memory of the device.

  bool operator==(const StepSize &) const = default;
};

/// What corrects the bias of moments that begin at 0, by the global step.
struct BiasCorrections {
  double first;  ///< 1 - beta1^step.
  double second; ///< sqrt(1 - beta2^step).
};

/// Of an optimizer that corrects bias. Throws a RuntimeError for a step less
/// than 1.
inline BiasCorrections biasCorrections(const Optimizer &optimizer,
                                       int64_t step) {
  if (step < 1)
    fail("the step of an update by ", propertiesOf(optimizer.kind).name,
         " must be at least 1, found ", step);
  double count = static_cast<double>(step);
  return {1.0 - std::pow(optimizer.beta1, count),
          std::sqrt(1.0 - std::pow(optimizer.beta2, count))};
}

/// learningRate * sqrt(1 - beta2^step) / (1 - beta1^step): Adam corrects the
/// bias of its moments in the step size, as torch.optim.SparseAdam does. The
/// learning rate for an optimizer that corrects none, or has a trust ratio,
/// whose moments are corrected themselves. Throws a RuntimeError for a step
/// less than 1 if it corrects them, and for a rate that is not above 0 if the
/// step divides by it.
inline double correctedRate(const Optimizer &optimizer, double learningRate,
                            int64_t step) {
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (properties.dividesByRate && !(learningRate > 0))
    fail("the learning rate of an update by ", properties.name,
         " must be above 0, found ", learningRate);
  if (!properties.correctsBias || properties.hasTrustRatio)
    return learningRate;
  BiasCorrections corrections = biasCorrections(optimizer, step);
  return learningRate * corrections.second / corrections.first;
}

/// 1 - learningRate * decay under decoupled weight decay (torch.optim.AdamW),
/// else 1; also with a trust ratio, which scales the decay too, and with
/// counters, by which it differs from row to row.
inline double keptShare(const Optimizer &optimizer, double learningRate) {
  if (!keepsShare(optimizer))
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

/// The number of the step of an optimizer with counters, which has the states
/// of f32; else 0. Throws a RuntimeError for one that f32 cannot count to.
inline float countedStep(const Optimizer &optimizer, int64_t step) {
  constexpr int64_t kLast = int64_t{1} << 24;
  if (!propertiesOf(optimizer.kind).hasCounters)
    return 0;
  if (step < 1 || step > kLast)
    fail("the step of an update by ", propertiesOf(optimizer.kind).name,
         " must be from 1 to ", kLast, ", found ", step);
  return static_cast<float>(step);
}

inline StepSize stepSize(const Optimizer &optimizer, float learningRate,
                         int64_t step) {
  double rate = static_cast<double>(learningRate);
  StepSize result = {static_cast<float>(correctedRate(optimizer, rate, step)),
                     static_cast<float>(keptShare(optimizer, rate)),
                     roundingSeed(optimizer, step)};
  result.step = countedStep(optimizer, step);
  const OptimizerProperties &properties = propertiesOf(optimizer.kind);
  if (properties.correctsBias && properties.hasTrustRatio) {
    BiasCorrections corrections = biasCorrections(optimizer, step);
    result.first = static_cast<float>(1.0 / corrections.first);
    result.second = static_cast<float>(1.0 / corrections.second);
  }
  return result;
}

/// True if equal learning rates and steps give equal step sizes.
inline bool haveSameStepSize(const Optimizer &a, const Optimizer &b) {
  bool corrects = propertiesOf(a.kind).correctsBias;
  bool decays = keepsShare(a);
  if (corrects != propertiesOf(b.kind).correctsBias ||
      (corrects && propertiesOf(a.kind).hasTrustRatio !=
                       propertiesOf(b.kind).hasTrustRatio) ||
      propertiesOf(a.kind).hasCounters != propertiesOf(b.kind).hasCounters ||
      a.stochasticRounding != b.stochasticRounding || decays != keepsShare(b))
    return false;
  return (!corrects || (a.beta1 == b.beta1 && a.beta2 == b.beta2)) &&
         (!decays || a.weightDecay == b.weightDecay);
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_RUNTIME_OPTIMIZERSTEPSIZE_H
