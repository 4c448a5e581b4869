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

/// Whether kernels can write a result into the caller's memory: a pooled f32
/// result on a single device, each column of which comes from one shard.
bool isDirect(const Device &device, const Routed &routed, int32_t lookup);

/// Waits for the ids and runs the forward kernels. Leaves direct results to
/// writeDirectly.
void lookUp(Device &device, Routed &routed, Partials &partials);

/// Where and in which type a caller wants a result.
struct ResultTarget {
  int64_t lookup;
  ElementType type;
  std::byte *out;
  int64_t stride; ///< from row to row, in values.
};

/// Computes those of the targets that lookUp has left, all at once, into the
/// caller's memory. Returns for each target whether it is written; the others
/// must be made from partials.
std::vector<bool> writeDirectly(Device &device, const Routed &routed,
                                const Partials &partials,
                                std::span<const ResultTarget> targets);
/// Computes all that lookUp has left. To be called before weights change.
void finishDeferred(Device &device);
/// Starts to send partial results to the ranks of the samples.
void startResults(Device &device, Routed &routed, Partials &partials);
/// Waits and writes results.
void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets);

/// Writes the gradients of the sample weights, one per id of the input.
void computeWeightsGradient(Device &device, Routed &routed, Partials &gradients,
                            float *out);

/// Step sizes per slot; 0 for tables that nothing trains.
std::vector<StepSize> stepSizesOf(const Device &device, float learningRate,
                                  int64_t step);
/// Waits for the gradients and applies the optimizers.
void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H
