//===- Update.cpp - Applies the optimizers --------------------------------===//
//
// One parallel launch over chunks of distinct rows of all slots, and a second
// one after the exchange of norms for two-phase optimizers.
//
//===----------------------------------------------------------------------===//

#include "NormExchange.h"
#include "Steps.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Runtime/OptimizerStepSize.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

constexpr int64_t kSortedIdsPerChunk = 1 << 12;

struct UpdateTask {
  const SlotUpdate *slot;
  int64_t begin;
  int64_t end;
};

const nsrt_slot_entry &kernelsOf(const Device &device, const SlotUpdate &slot) {
  return device.program.slots[slot.slot];
}

std::vector<UpdateTask> makeTasks(std::span<const SlotUpdate> slots) {
  std::vector<UpdateTask> tasks;
  for (const SlotUpdate &slot : slots) {
    int64_t rows = slot.sorted->numRows;
    if (rows == 0)
      continue;
    int64_t chunks =
        std::clamp<int64_t>(slot.sorted->numIds / kSortedIdsPerChunk, 1, rows);
    for (int64_t i = 0; i < chunks; ++i)
      tasks.push_back({&slot, rows * i / chunks, rows * (i + 1) / chunks});
  }
  return tasks;
}

/// Updates one-phase slots; reduces the gradients of two-phase ones.
void runFirstPhase(const Device &device, const UpdateTask &task,
                   float stepSize) {
  const SlotUpdate &slot = *task.slot;
  const nsrt_slot_entry &kernels = kernelsOf(device, slot);
  const Shard &shard = device.slots[slot.slot];
  const auto *segments = as<const int64_t>(slot.sorted->segments);
  const auto *offsets = as<const int64_t>(slot.gradientOffsets);
  const auto *weights = as<const float>(slot.sampleWeights);
  if (kernels.update)
    kernels.update(shard.weights(), shard.state(0), shard.state(1),
                   as<const int64_t>(slot.sorted->rows), segments, offsets,
                   weights, slot.gradients, stepSize, task.begin, task.end);
  else
    kernels.reduce(segments, offsets, weights, slot.gradients,
                   as<float>(slot.reduced), as<float>(slot.norms), task.begin,
                   task.end);
}

void runSecondPhase(const Device &device, const UpdateTask &task,
                    float stepSize) {
  const SlotUpdate &slot = *task.slot;
  const Shard &shard = device.slots[slot.slot];
  kernelsOf(device, slot)
      .apply(shard.weights(), shard.state(0),
             as<const int64_t>(slot.sorted->rows),
             as<const float>(slot.reduced), as<const float>(slot.norms),
             stepSize, task.begin, task.end);
}

void prepare(Device &device, SlotUpdate &slot) {
  const nsrt_slot_entry &kernels = kernelsOf(device, slot);
  if (!kernels.update && !kernels.reduce)
    fail("the program was compiled for inference; it has no update kernel ",
         "for table \"", device.slots[slot.slot].table().name, "\"");
  if (kernels.update)
    return;
  int64_t stride = nsrt_row_stride(kernels.dim, sizeof(float));
  slot.reduced = device.buffers->acquireArray<float>(
      BufferKind::Norms, slot.sorted->numRows * stride);
  slot.norms = device.buffers->acquireArray<float>(BufferKind::Norms,
                                                   slot.sorted->numRows);
}

bool anyExchangesNorms(const WorldPlan &plan) {
  return std::find(plan.needsNormExchange.begin(), plan.needsNormExchange.end(),
                   true) != plan.needsNormExchange.end();
}

} // namespace

void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step) {
  finishDeferred(device);
  UpdateInputs work(device, routed, gradients);
  std::vector<float> stepSizes(device.slots.size());
  for (SlotUpdate &slot : work.slots) {
    prepare(device, slot);
    stepSizes[slot.slot] = stepSize(*device.slots[slot.slot].table().optimizer,
                                    learningRate, step);
  }
  std::vector<UpdateTask> tasks = makeTasks(work.slots);
  {
    PhaseTimer timer(device.figures, Phase::Update);
    device.threads.parallelFor(
        static_cast<int64_t>(tasks.size()), [&](int64_t i) {
          const UpdateTask &task = tasks[static_cast<size_t>(i)];
          runFirstPhase(device, task, stepSizes[task.slot->slot]);
        });
  }
  if (!anyExchangesNorms(*device.plan))
    return;
  exchangeNorms(device, work.slots);
  PhaseTimer timer(device.figures, Phase::Update);
  std::erase_if(tasks, [&](const UpdateTask &task) {
    return kernelsOf(device, *task.slot).update != nullptr;
  });
  device.threads.parallelFor(
      static_cast<int64_t>(tasks.size()), [&](int64_t i) {
        const UpdateTask &task = tasks[static_cast<size_t>(i)];
        runSecondPhase(device, task, stepSizes[task.slot->slot]);
      });
}

} // namespace neuroshard::runtime
