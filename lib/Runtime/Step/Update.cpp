//===- Update.cpp - Applies the optimizers --------------------------------===//

#include "Exchange/CopyExchange.h"
#include "Exchange/RowSumExchange.h"
#include "GradientParts.h"
#include "KeptGradients.h"
#include "NormExchange.h"
#include "Steps.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

namespace neuroshard::runtime {

std::vector<float> stepSizesOf(const Device &device, float learningRate,
                               int64_t step) {
  std::vector<float> sizes;
  for (const Shard &slot : device.slots)
    sizes.push_back(
        slot.table().trained()
            ? stepSize(*slot.table().optimizer,
                       device.rates.of(slot.spec().table, learningRate), step)
            : 0.0f);
  return sizes;
}

static std::unique_ptr<Update> prepare(Device &device,
                                       std::vector<GradientPart> parts) {
  PhaseTimer timer(device.figures, Phase::Sort);
  return device.backend->prepareUpdate(std::move(parts));
}

static void updateTables(Device &device, Update &update,
                         std::span<const float> stepSizes) {
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

/// Updates the replicated tables of an exchange whose gradients travel as sums
/// of rows, by those of some steps.
static void updateCopies(Device &device, std::span<Partials *const> steps,
                         std::span<const float> stepSizes) {
  Partials &first = *steps.front();
  if (first.replicas.tables.empty())
    return;
  for (Partials *step : steps)
    receiveRowSums(device, *step);
  PhaseTimer timer(device.figures, Phase::Update);
  addUpSteps(device, steps);
  std::vector<SlotSums> sums = slotSumsOf(first);
  std::erase_if(sums, [&](const SlotSums &one) {
    const Shard &shard = device.slots[static_cast<size_t>(one.slot)];
    return device.rates.isFrozen(shard.spec().table);
  });
  device.backend->updateRows(sums, stepSizes);
}

static void updateAllCopies(Device &device, const StepGradients &steps,
                            std::span<const float> stepSizes) {
  std::map<int32_t, std::vector<Partials *>> ofExchange;
  for (size_t i = 0; i < steps.routed.size(); ++i)
    ofExchange[steps.routed[i]->exchange].push_back(steps.gradients[i]);
  for (const auto &[exchange, gradients] : ofExchange)
    updateCopies(device, gradients, stepSizes);
}

void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step) {
  finishDeferred(device);
  device.order.addUpdate(learningRate, device.rates.all(), step);
  KeptGradients kept = takeKept(device);
  StepGradients steps = joinSteps(kept, routed, gradients);
  std::vector<GradientPart> parts =
      makeGradientParts(device, steps.routed, steps.gradients);
  auto continueAll = [&] {
    for (Partials *exchange : steps.gradients)
      continueRowSums(device, *exchange);
  };
  // What the updates of other tables wait for goes first.
  CopyMessages copies = exchangeCopies(device, parts);
  continueAll();
  std::unique_ptr<Update> update = prepare(device, std::move(parts));
  continueAll();
  std::vector<float> stepSizes = stepSizesOf(device, learningRate, step);
  updateTables(device, *update, stepSizes);
  continueAll();
  updateAllCopies(device, steps, stepSizes);
}

} // namespace neuroshard::runtime
