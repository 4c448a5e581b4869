//===- SortKeys.cpp - Keys and positions that an update sorts -------------===//

#include "SortKeys.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace neuroshard::cuda {
namespace {

constexpr int64_t kMaxPositions = std::numeric_limits<int32_t>::max() - 1;

auto bodiesOf(const GpuSlot &slot) {
  return std::tuple(slot.partialVariant, slot.updateVariant, slot.reduceVariant,
                    slot.applyVariant, slot.sumsUpdateVariant,
                    slot.distinctSumsVariant);
}

} // namespace

KeySpace::KeySpace(const Binding &binding) : keyBegin(binding.numSlots(), -1) {
  auto append = [&](size_t slot) {
    keyBegin[slot] = end;
    end += binding.shardOf(slot).rows.size();
  };
  const std::vector<GpuSlot> &slots = binding.program.slots;
  for (size_t slot = 0; slot < binding.numSlots(); ++slot)
    if (slots[slot].trainable())
      updated.push_back(static_cast<int32_t>(slot));
  std::stable_sort(updated.begin(), updated.end(), [&](int32_t a, int32_t b) {
    return bodiesOf(slots[static_cast<size_t>(a)]) <
           bodiesOf(slots[static_cast<size_t>(b)]);
  });
  for (int32_t slot : updated)
    append(static_cast<size_t>(slot));
  for (const GpuLookup &lookup : binding.program.lookups)
    if (lookup.gradientVariant >= 0 &&
        !hasPositions(static_cast<size_t>(lookup.slot)))
      append(static_cast<size_t>(lookup.slot));
  // A place of a cache has a key behind those of the slot's rows.
  int64_t last = end;
  for (size_t slot = 0; slot < binding.numSlots(); ++slot)
    if (const ShardSpec &shard = binding.shardOf(slot);
        hasPositions(slot) && shard.hasRowCache())
      last =
          std::max(last, keyBegin[slot] + shard.rows.size() + shard.cache.rows);
  keyBytes =
      last < static_cast<int64_t>(std::numeric_limits<uint32_t>::max()) ? 4 : 8;
  // The filler has all bits set: 2^endBit - 1 >= end.
  endBit =
      std::max(1, static_cast<int>(std::bit_width(static_cast<uint64_t>(end))));
}

int64_t PositionMaker::place(const Part &part, int32_t slot, bool exact) {
  int64_t count = part.id_end - part.id_begin;
  Last &last = lastOfSlot[slot];
  if (exact) {
    last = {append(count), -1};
    return last.begin - part.id_begin;
  }
  filled = true;
  std::vector<Layer> &layers = groups[{part.ids, part.id_begin, part.id_end}];
  // Behind the slot's earlier parts: positions must be in the order of parts.
  auto fits = [&](const Layer &layer) {
    bool later = layer.begin > last.begin ||
                 (layer.begin == last.begin && part.feature > last.feature);
    return later && !layer.features.count(part.feature);
  };
  auto layer = std::find_if(layers.begin(), layers.end(), fits);
  if (layer == layers.end())
    layer = layers.insert(layers.end(), Layer{append(count), {}});
  layer->features.insert(part.feature);
  last = {layer->begin, part.feature};
  return layer->begin - part.id_begin;
}

int64_t PositionMaker::append(int64_t count) {
  if (count > kMaxPositions - total)
    fail("the step has more than ", kMaxPositions,
         " ids to update by on one device; use smaller batches");
  return std::exchange(total, total + count);
}

} // namespace neuroshard::cuda
