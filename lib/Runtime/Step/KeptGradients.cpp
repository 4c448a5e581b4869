//===- KeptGradients.cpp - Gradients of steps without an update -----------===//

#include "KeptGradients.h"

#include "Exchange/GradientExchange.h"
#include "Exchange/RowSumExchange.h"
#include "neuroshard/Artifact/Error.h"

#include <memory>
#include <utility>

namespace neuroshard::runtime {

void keepGradients(Device &device, std::span<Routed *const> routed,
                   std::span<Partials *const> gradients) {
  if (device.backend->isCapturing())
    fail("gradients cannot be kept for a later update while a CUDA graph is "
         "captured");
  if (device.prepared)
    fail("the norm of kept gradients was taken; update by them, or drop them, "
         "before there are others");
  for (size_t i = 0; i < routed.size(); ++i) {
    receiveGradients(device, *routed[i], *gradients[i]);
    if (!gradients[i]->replicas.tables.empty())
      receiveRowSums(device, *gradients[i]);
  }
  for (size_t i = 0; i < routed.size(); ++i) {
    device.kept.routed.push_back(
        std::make_unique<Routed>(std::move(*routed[i])));
    device.kept.gradients.push_back(
        std::make_unique<Partials>(std::move(*gradients[i])));
  }
}

KeptGradients takeKept(Device &device) {
  return std::exchange(device.kept, {});
}

StepGradients joinSteps(const KeptGradients &kept,
                        std::span<Routed *const> routed,
                        std::span<Partials *const> gradients) {
  StepGradients steps;
  for (const auto &one : kept.routed)
    steps.routed.push_back(one.get());
  for (const auto &one : kept.gradients)
    steps.gradients.push_back(one.get());
  steps.routed.insert(steps.routed.end(), routed.begin(), routed.end());
  steps.gradients.insert(steps.gradients.end(), gradients.begin(),
                         gradients.end());
  return steps;
}

} // namespace neuroshard::runtime
