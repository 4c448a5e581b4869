//===- StepTasks.cpp - Task arrays of a step's kernels --------------------===//
//
// Makes tasks and their blocks.
//
//===----------------------------------------------------------------------===//

#include "StepTasks.h"
#include "LookupParts.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <limits>

namespace neuroshard::cuda {
namespace {

constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();

int32_t flagsOf(const GpuLookup &lookup, const Part &part) {
  int32_t flags = lookup.idBytes == 8 ? NSG_ID64 : 0;
  if (part.isSummed)
    return flags;
  if (lookup.pooled)
    flags |= NSG_POOLED;
  if (lookup.mean)
    flags |= NSG_MEAN;
  if (lookup.weighted)
    flags |= NSG_WEIGHTED;
  if (lookup.pooled && !part.offsets)
    flags |= NSG_FIXED;
  return flags;
}

/// The fields of a task that lookup and expansion share.
nsg_lookup_task makeTask(const Binding &binding, const Part &part,
                         void *weights) {
  const GpuLookup &lookup =
      binding.program.lookups[static_cast<size_t>(part.lookup)];
  const ShardSpec &shard = binding.shardOf(static_cast<size_t>(lookup.slot));
  nsg_lookup_task task = {};
  task.flags = flagsOf(lookup, part);
  task.weights = weights;
  task.rows = part.idsArePlaces ? std::numeric_limits<int64_t>::max()
                                : shard.rows.size();
  task.row_begin = shard.rows.begin;
  task.ids = part.ids;
  task.offsets = task.flags & NSG_POOLED ? part.offsets : nullptr;
  task.first_id = task.offsets ? 0 : part.id_begin;
  task.sample_weights =
      task.flags & NSG_WEIGHTED ? part.sample_weights : nullptr;
  task.items = itemsOf(lookup, part);
  task.pooling = task.offsets ? 0 : part.pooling;
  task.out = part.out;
  task.out_stride = part.out_stride;
  task.padding = part.padding;
  task.variant = lookup.variantFor(task.flags & NSG_FIXED);
  task.gradient_variant = lookup.gradientVariant;
  return task;
}

/// The places of the ids of a part, whose positions are all its own.
nsg_cached_part describePlaces(const Part &part, const nsg_lookup_task &task) {
  nsg_cached_part cached = {};
  cached.id_bytes = task.flags & NSG_ID64 ? 8 : 4;
  cached.places = static_cast<const std::byte *>(part.places) +
                  part.id_begin * cached.id_bytes;
  cached.position_begin = task.position_begin + part.id_begin;
  cached.position_end = task.position_begin + part.id_end;
  cached.key_begin = task.key_begin;
  return cached;
}

/// Blocks of a lookup or weight gradient.
int64_t blocksOf(const nsg_lookup_task &task, int32_t itemsPerBlock) {
  return ceilDivide(task.items,
                    static_cast<int64_t>(itemsPerBlock) * task.items_per_group);
}

/// Estimates the ids of a part.
int64_t estimateIds(const Binding &binding, const Part &part) {
  auto lookup = static_cast<size_t>(part.lookup);
  size_t exchange =
      static_cast<size_t>(binding.bound().lookups[lookup].exchange);
  int64_t ids = part.id_end - part.id_begin;
  // The range has the ids of all features of the input.
  return part.exact
             ? ids
             : ids / static_cast<int64_t>(
                         binding.manifest.exchanges[exchange].features.size());
}

/// Starting a block costs about as much as half a bag of one id, and half a
/// wave of blocks is lost at the end. So waves / k waves of k bags take least
/// time at about k = sqrt(waves). Groups take one long bag each.
int32_t chooseItemsPerGroup(int64_t waves, int64_t items, int64_t ids,
                            bool pooled) {
  constexpr int64_t kMostItems = 8, kIdsPerGroup = 16, kRowsAtOnce = 4;
  int64_t k = 1;
  while (k < kMostItems && 4 * k * k <= waves &&
         2 * k * ids <= kIdsPerGroup * items)
    k *= 2;
  // Kernels read several rows at once if ids are in no bags.
  if (!pooled && waves >= kRowsAtOnce)
    k = std::max(k, kRowsAtOnce);
  return static_cast<int32_t>(k);
}

/// Sets how many items groups of lanes take, and the blocks of lookups.
void groupItems(const Binding &binding, std::span<const Part> parts,
                int64_t residentBlocks, StepTasks &step) {
  auto lookupOf = [&](size_t i) -> const GpuLookup & {
    return binding.program.lookups[static_cast<size_t>(parts[i].lookup)];
  };
  int64_t blocks = 0;
  for (size_t i = 0; i < parts.size(); ++i)
    if (step.tasks[i].out)
      blocks += ceilDivide(step.tasks[i].items, lookupOf(i).itemsPerBlock);
  int64_t waves = blocks / std::max<int64_t>(1, residentBlocks);
  for (size_t i = 0; i < parts.size(); ++i) {
    nsg_lookup_task &task = step.tasks[i];
    task.items_per_group = chooseItemsPerGroup(
        waves, task.items, estimateIds(binding, parts[i]), lookupOf(i).pooled);
    step.blocks[LookupBlocks].push_back(
        task.out ? blocksOf(task, lookupOf(i).itemsPerBlock) : 0);
  }
}

/// Numbers a kernel's blocks through all tasks.
void numberBlocks(StepTasks &step, TaskKernel kernel,
                  int32_t nsg_lookup_task::*first) {
  int64_t total = 0;
  for (size_t i = 0; i < step.tasks.size(); ++i) {
    step.tasks[i].*first = static_cast<int32_t>(total);
    total += step.blocks[kernel][i];
    if (total > kMaxBlocks)
      fail("the step takes more than ", kMaxBlocks,
           " blocks of a kernel; use smaller batches");
  }
}

} // namespace

StepTasks makeTasks(const Binding &binding, const KeySpace &keys,
                    std::span<const Part> parts, std::span<void *const> weights,
                    bool training, int64_t residentBlocks) {
  StepTasks step;
  PositionMaker positions;
  std::vector<int64_t> idsOfSlot(binding.numSlots());
  for (const Part &part : parts) {
    const GpuLookup &lookup =
        binding.program.lookups[static_cast<size_t>(part.lookup)];
    size_t slot = static_cast<size_t>(lookup.slot);
    nsg_lookup_task task = makeTask(binding, part, weights[slot]);
    bool isUpdated = training && keys.hasPositions(slot);
    if (isUpdated) {
      bool exact = part.exact || !task.offsets;
      task.key_begin = keys.keyBegin[slot];
      task.position_begin = positions.place(part, lookup.slot, exact);
      idsOfSlot[slot] += part.id_end - part.id_begin;
      if (part.places && !exact)
        fail("ids of a shard with a cache of rows must be sorted by bag");
      if (part.places && part.id_end > part.id_begin)
        step.cachedParts.push_back(describePlaces(part, task));
    }
    step.blocks[ExpandBlocks].push_back(
        isUpdated ? ceilDivide(task.items, NSG_EXPAND_ITEMS) : 0);
    step.blocks[GradientBlocks].push_back(0);
    step.tasks.push_back(task);
  }
  groupItems(binding, parts, residentBlocks, step);
  step.numPositions = positions.total;
  step.filled = positions.filled;
  for (int32_t slot : keys.updated)
    step.rowsOfUpdated.push_back(
        std::min(idsOfSlot[static_cast<size_t>(slot)],
                 binding.shardOf(static_cast<size_t>(slot)).rows.size()));
  numberBlocks(step, LookupBlocks, &nsg_lookup_task::first_block);
  numberBlocks(step, ExpandBlocks, &nsg_lookup_task::first_expand_block);
  return step;
}

void placeGradients(StepTasks &step, std::span<const GradientPlace> places) {
  for (size_t i = 0; i < step.tasks.size(); ++i) {
    step.tasks[i].gradient_begin = places[i].begin;
    step.tasks[i].gradient_stride = places[i].stride;
  }
}

void addWeightGradients(const Binding &binding, StepTasks &step,
                        std::span<const Part> parts,
                        std::span<const nsc_gradient> gradients,
                        const float *base) {
  for (size_t i = 0; i < parts.size(); ++i) {
    nsg_lookup_task &task = step.tasks[i];
    step.blocks[GradientBlocks][i] = 0;
    float *to = gradients[i].weight_gradient;
    if (!to)
      continue;
    const GpuLookup &lookup =
        binding.program.lookups[static_cast<size_t>(parts[i].lookup)];
    if (lookup.gradientVariant < 0)
      fail("part ", i, ", ",
           binding.nameOf(static_cast<size_t>(parts[i].lookup)),
           ": the program does not compute gradients of its sample weights");
    task.gradients = base;
    task.weight_gradient = to;
    step.blocks[GradientBlocks][i] =
        blocksOf(task, lookup.gradientItemsPerBlock);
  }
  numberBlocks(step, GradientBlocks, &nsg_lookup_task::first_gradient_block);
}

std::vector<int32_t> makeTaskOfBlock(std::span<const int64_t> blocks) {
  std::vector<int32_t> tasks;
  for (size_t i = 0; i < blocks.size(); ++i)
    tasks.insert(tasks.end(), static_cast<size_t>(blocks[i]),
                 static_cast<int32_t>(i));
  return tasks;
}

std::vector<GradientPlace> placesOfResults(const Binding &binding,
                                           std::span<const Part> parts) {
  std::vector<GradientPlace> places(parts.size());
  const void *first = nullptr;
  for (size_t i = 0; i < parts.size(); ++i) {
    const GpuLookup &lookup =
        binding.program.lookups[static_cast<size_t>(parts[i].lookup)];
    if (!parts[i].out)
      continue;
    if (!first)
      first = parts[i].out;
    intptr_t bytes = reinterpret_cast<intptr_t>(parts[i].out) -
                     reinterpret_cast<intptr_t>(first);
    places[i] = {bytes / elementBytes(lookup.output), parts[i].out_stride};
  }
  return places;
}

} // namespace neuroshard::cuda
