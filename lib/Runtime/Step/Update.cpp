//===- Update.cpp - Applies the optimizers --------------------------------===//

#include "Exchange/CopyExchange.h"
#include "Exchange/RowSumExchange.h"
#include "GradientParts.h"
#include "NormExchange.h"
#include "Steps.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace neuroshard::runtime {

std::vector<StepSize> stepSizesOf(const Device &device, float learningRate,
                                  int64_t step) {
  std::vector<StepSize> sizes;
  for (const Shard &slot : device.slots)
    sizes.push_back(slot.table().trained()
                        ? stepSize(*slot.table().optimizer, learningRate, step)
                        : StepSize());
  return sizes;
}

static std::unique_ptr<Update> prepare(Device &device,
                                       std::vector<GradientPart> parts) {
  PhaseTimer timer(device.figures, Phase::Sort);
  return device.backend->prepareUpdate(std::move(parts));
}

static void updateTables(Device &device, Update &update,
                         std::span<const StepSize> stepSizes) {
  {
    PhaseTimer timer(device.figures, Phase::Update);
    update.run(stepSizes);
  }
  const std::vector<bool> &needsNorms = device.plan->needsNormExchange;
  if (std::find(needsNorms.begin(), needsNorms.end(), true) == needsNorms.end())
    return;
  NormMessages norms = exchangeNorms(device, update);
  PhaseTimer timer(device.figures, Phase::Update);
  update.finish(norms.terms);
}

/// Updates the replicated tables whose gradients travel as sums of rows.
static void updateCopies(Device &device, Partials &gradients,
                         std::span<const StepSize> stepSizes) {
  if (gradients.replicas.tables.empty())
    return;
  receiveRowSums(device, gradients);
  PhaseTimer timer(device.figures, Phase::Update);
  device.backend->updateRows(slotSumsOf(gradients), stepSizes);
}

void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step) {
  finishDeferred(device);
  device.order.addUpdate(learningRate, step);
  std::vector<GradientPart> parts =
      makeGradientParts(device, routed, gradients);
  auto continueAll = [&] {
    for (Partials *exchange : gradients)
      continueRowSums(device, *exchange);
  };
  // What the updates of other tables wait for goes first.
  CopyMessages copies = exchangeCopies(device, parts);
  continueAll();
  std::unique_ptr<Update> update = prepare(device, std::move(parts));
  continueAll();
  std::vector<StepSize> stepSizes = stepSizesOf(device, learningRate, step);
  updateTables(device, *update, stepSizes);
  continueAll();
  for (Partials *exchange : gradients)
    updateCopies(device, *exchange, stepSizes);
}

} // namespace neuroshard::runtime
