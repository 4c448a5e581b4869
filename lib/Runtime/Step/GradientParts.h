//===- GradientParts.h - Entries of an exchange with gradients --*- C++ -*-===//
//
// The ids of a step at their owners, with the gradients that were received for
// them.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_GRADIENTPARTS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_GRADIENTPARTS_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Gradients of the first item of an entry from one rank, null if it has no
/// ids.
const float *gradientsOf(const PeerIds &ids, const ReceivedBlock &block,
                         size_t entry);

/// The parts of all trained tables, by exchange, lookup and rank, so that a
/// row's gradients are added in the same order for every plan. Waits for the
/// gradients.
std::vector<GradientPart>
makeGradientParts(Device &device, std::span<Routed *const> routed,
                  std::span<Partials *const> gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_GRADIENTPARTS_H
