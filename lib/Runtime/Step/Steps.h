//===- Steps.h - Phases of a step on one device -----------------*- C++ -*-===//
//
// Lookups, results and updates, as the nsrt_* calls of HostProgramABI.h ask for
// them. These functions throw; the Routed and Partials passed to them must not
// be failed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// nsrt_lookup.
void lookUp(Device &device, Routed &routed, Partials &partials);
/// Where a caller wants a result, and as what.
struct ResultTarget {
  int64_t lookup;
  ElementType type;
  std::byte *out;
};

/// Writes those results that lookUp has left to be computed in place, all at
/// once, and says which; the others have to be put together from partials.
std::vector<bool> writeDirectly(Device &device, const Routed &routed,
                                const Partials &partials,
                                std::span<const ResultTarget> targets);
/// Computes what lookUp has left, before the weights change.
void finishDeferred(Device &device);
/// nsrt_results_start.
void startResults(Device &device, Routed &routed, Partials &partials);
/// nsrt_result_wait, nsrt_results_wait.
void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets);

/// nsrt_weights_gradient.
void computeWeightsGradient(Device &device, Routed &routed, Partials &gradients,
                            float *out);

/// nsrt_update.
void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H
