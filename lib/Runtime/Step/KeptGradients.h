//===- KeptGradients.h - Gradients of steps without an update ---*- C++ -*-===//
//
// A step can leave its gradients to the update of a later one, which then has
// those of all: each row has one update, by the sum of its gradients in the
// order of the steps.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_KEPTGRADIENTS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_KEPTGRADIENTS_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// What an update has of some steps, in their order.
struct StepGradients {
  std::vector<Routed *> routed;
  std::vector<Partials *> gradients; ///< of each of these.
};

/// Waits for the gradients of a step and takes them from its handles. While
/// they are kept, weights stay as they are.
void keepGradients(Device &device, std::span<Routed *const> routed,
                   std::span<Partials *const> gradients);
/// What the device has kept; it has nothing afterwards.
KeptGradients takeKept(Device &device);
/// Those that were kept, and then those of a step.
StepGradients joinSteps(const KeptGradients &kept,
                        std::span<Routed *const> routed,
                        std::span<Partials *const> gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_KEPTGRADIENTS_H
