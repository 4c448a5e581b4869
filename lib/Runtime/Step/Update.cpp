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

std::vector<float> stepSizesOf(const Device &device, float learningRate,
                               int64_t step) {
  std::vector<float> sizes;
  for (const Shard &slot : device.slots)
    sizes.push_back(slot.table().trained()
                        ? stepSize(*slot.table().optimizer, learningRate, step)
                        : 0.0f);
  return sizes;
}

static std::unique_ptr<Update> prepare(Device &device,
                                       std::vector<GradientPart> parts) {
  PhaseTimer timer(device.figures, Phase::Sort);
  return device.backend->prepareUpdate(std::move(parts));
}

void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step) {
  finishDeferred(device);
  device.order.addUpdate(learningRate, step);
  std::vector<GradientPart> parts =
      makeGradientParts(device, routed, gradients);
  CopyMessages copies = exchangeCopies(device, parts);
  std::unique_ptr<Update> update = prepare(device, std::move(parts));
  {
    PhaseTimer timer(device.figures, Phase::Update);
    std::vector<float> stepSizes = stepSizesOf(device, learningRate, step);
    update->run(stepSizes);
    for (const Partials *exchange : gradients)
      if (!exchange->replicas.tables.empty())
        device.backend->updateRows(slotSumsOf(*exchange), stepSizes);
  }
  const std::vector<bool> &needsNorms = device.plan->needsNormExchange;
  if (std::find(needsNorms.begin(), needsNorms.end(), true) == needsNorms.end())
    return;
  NormMessages norms = exchangeNorms(device, *update);
  PhaseTimer timer(device.figures, Phase::Update);
  update->finish(norms.terms);
}

} // namespace neuroshard::runtime
