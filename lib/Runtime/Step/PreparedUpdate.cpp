//===- PreparedUpdate.cpp - The gradients of one update -------------------===//

#include "PreparedUpdate.h"

#include "Exchange/RowSumExchange.h"
#include "Exchange/Wire.h"
#include "GradientParts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace neuroshard::runtime {
namespace {

const Shard &shardOf(const Device &device, int32_t slot) {
  return device.slots[static_cast<size_t>(slot)];
}

int32_t slotOf(const Device &device, const GradientPart &part) {
  return device.program.lookups[part.lookup].slot;
}

bool isFirstCopy(const Device &device, int32_t slot) {
  return shardOf(device, slot).spec().devices.front() == device.rank();
}

/// Rows of gradients that a part has.
int64_t rowsOf(const GradientPart &part) {
  return part.ids.offsets ? part.ids.bags : part.ids.numIds;
}

void scaleParts(Device &device, PreparedUpdate &update, float scale) {
  int64_t values = 0;
  auto widthOf = [&](const GradientPart &part) {
    return shardOf(device, slotOf(device, part)).spec().cols.size();
  };
  for (const GradientPart &part : update.parts)
    values += part.ids.numIds > 0 ? rowsOf(part) * widthOf(part) : 0;
  update.scaled = device.buffers->acquireArray<float>(
      BufferKind::ReceivedGradients, values);
  auto *next = as<float>(update.scaled);
  std::vector<RowMove> moves;
  for (GradientPart &part : update.parts) {
    if (part.ids.numIds == 0)
      continue;
    RowMove &move = moves.emplace_back();
    move.source = {reinterpret_cast<const std::byte *>(part.gradients),
                   part.stride};
    move.rows = rowsOf(part);
    move.width = part.stride = widthOf(part);
    move.target = {reinterpret_cast<std::byte *>(next), move.width};
    move.scale = scale;
    part.gradients = std::exchange(next, next + move.rows * move.width);
  }
  device.backend->moveRows(moves);
}

/// Scales sums of rows, but not the numbers behind them.
void scaleSums(Device &device, Partials &gradients, float scale) {
  const ReplicaUpdate &replicas = gradients.replicas;
  if (replicas.tables.empty())
    return;
  Buffer scaled = device.buffers->acquireArray<float>(
      BufferKind::ReceivedGradients, replicas.numSums);
  int64_t sums = replicas.tables.front().firstCount;
  auto bytes = [](int64_t values) {
    return values * static_cast<int64_t>(sizeof(float));
  };
  std::vector<RowMove> moves = {moveOf(gradients.rowSums.get(), WireFormat::F32,
                                       scaled.get(), WireFormat::F32, sums),
                                copyOf(gradients.rowSums.get() + bytes(sums),
                                       scaled.get() + bytes(sums),
                                       bytes(replicas.numSums - sums))};
  moves.front().scale = scale;
  device.backend->moveRows(moves);
  gradients.rowSums = std::move(scaled);
}

} // namespace

PreparedUpdate gatherGradients(Device &device, std::span<Routed *const> routed,
                               std::span<Partials *const> gradients) {
  PreparedUpdate update;
  update.kept = takeKept(device);
  update.steps = joinSteps(update.kept, routed, gradients);
  const StepGradients &steps = update.steps;
  update.parts = makeGradientParts(device, steps.routed, steps.gradients);
  update.copies = exchangeCopies(device, update.parts);
  std::map<int32_t, std::vector<Partials *>> ofExchange;
  for (size_t i = 0; i < steps.routed.size(); ++i)
    if (!steps.gradients[i]->replicas.tables.empty())
      ofExchange[steps.routed[i]->exchange].push_back(steps.gradients[i]);
  for (auto &[exchange, all] : ofExchange)
    update.summed.push_back(std::move(all));
  return update;
}

std::vector<SlotSums> receiveSums(Device &device, PreparedUpdate &update) {
  std::vector<SlotSums> sums;
  for (std::vector<Partials *> &steps : update.summed) {
    for (Partials *step : steps)
      receiveRowSums(device, *step);
    addUpSteps(device, steps);
    steps.resize(1);
    for (const SlotSums &one : slotSumsOf(*steps.front()))
      if (!device.rates.isFrozen(shardOf(device, one.slot).spec().table))
        sums.push_back(one);
  }
  return sums;
}

std::vector<SlotSums> ownSums(Device &device, PreparedUpdate &update) {
  std::vector<SlotSums> sums = receiveSums(device, update);
  std::erase_if(sums, [&](const SlotSums &one) {
    return !isFirstCopy(device, one.slot);
  });
  PhaseTimer timer(device.figures, Phase::Update);
  std::vector<GradientPart> own;
  std::ranges::copy_if(update.parts, std::back_inserter(own),
                       [&](const GradientPart &part) {
                         return isFirstCopy(device, slotOf(device, part));
                       });
  update.sums = device.backend->sumByRow(std::move(own));
  for (int32_t slot = 0; slot < static_cast<int32_t>(device.slots.size());
       ++slot) {
    int64_t rows = update.sums->numRows(slot);
    if (rows > 0)
      sums.push_back({slot, rows, const_cast<float *>(update.sums->sums(slot)),
                      paddedColumns(shardOf(device, slot).spec().cols.size()),
                      nullptr});
  }
  return sums;
}

void scaleGradients(Device &device, PreparedUpdate &update, float scale) {
  if (scale == 1)
    return;
  receiveSums(device, update);
  PhaseTimer timer(device.figures, Phase::Update);
  scaleParts(device, update, scale);
  for (const std::vector<Partials *> &steps : update.summed)
    scaleSums(device, *steps.front(), scale);
}

} // namespace neuroshard::runtime
