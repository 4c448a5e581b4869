//===- Update.cpp - Applies the optimizers --------------------------------===//

#include "CatchUp.h"
#include "CopyAverages.h"
#include "Exchange/RowSumExchange.h"
#include "NormExchange.h"
#include "PreparedUpdate.h"
#include "Steps.h"
#include "neuroshard/Artifact/CopyAverages.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace neuroshard::runtime {

std::vector<StepSize> stepSizesOf(const Device &device, float learningRate,
                                  int64_t step) {
  std::vector<StepSize> sizes;
  for (const Shard &slot : device.slots)
    sizes.push_back(
        slot.table().trained() && !device.rates.isFrozen(slot.spec().table)
            ? stepSize(*slot.table().optimizer,
                       device.rates.of(slot.spec().table, learningRate), step)
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

/// The update that was prepared, or that of the kept steps and this one.
static PreparedUpdate takeUpdate(Device &device,
                                 std::span<Routed *const> routed,
                                 std::span<Partials *const> gradients) {
  if (!device.prepared)
    return gatherGradients(device, routed, gradients);
  std::shared_ptr<PreparedUpdate> prepared = std::exchange(device.prepared, {});
  if (!routed.empty())
    fail("the norm of kept gradients was taken; update by them before there "
         "are others");
  return std::move(*prepared);
}

static void updateByGradients(Device &device, std::span<Routed *const> routed,
                              std::span<Partials *const> gradients,
                              float learningRate, int64_t step) {
  finishDeferred(device);
  device.order.addUpdate(learningRate, device.rates.all(), step);
  std::vector<StepSize> stepSizes = stepSizesOf(device, learningRate, step);
  addToHistories(device, stepSizes);
  // What the updates of other tables wait for goes first.
  PreparedUpdate all = takeUpdate(device, routed, gradients);
  auto continueAll = [&] {
    for (Partials *exchange : all.steps.gradients)
      continueRowSums(device, *exchange);
  };
  continueAll();
  std::unique_ptr<Update> update = prepare(device, std::move(all.parts));
  continueAll();
  updateTables(device, *update, stepSizes);
  continueAll();
  std::vector<SlotSums> sums = receiveSums(device, all);
  PhaseTimer timer(device.figures, Phase::Update);
  if (!sums.empty())
    device.backend->updateRows(sums, stepSizes);
}

void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step) {
  requireNoCapture(device);
  updateByGradients(device, routed, gradients, learningRate, step);
  averageCopies(device, averagedShards(device.manifest(),
                                       device.plan->driftingCopies, step));
}

} // namespace neuroshard::runtime
