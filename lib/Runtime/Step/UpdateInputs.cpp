//===- UpdateInputs.cpp - Inputs of the update kernels --------------------===//
//
// Ids are numbered by exchange, lookup, bag of the global batch and position,
// so that a row's gradients are added in the same order for every plan.
//
//===----------------------------------------------------------------------===//

#include "UpdateInputs.h"
#include "Exchange/GradientExchange.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {

namespace {

int64_t idAt(const GradientSource &source, int64_t index) {
  const std::byte *ids = source.stream->ids;
  return source.idBytes == 4 ? reinterpret_cast<const int32_t *>(ids)[index]
                             : reinterpret_cast<const int64_t *>(ids)[index];
}

} // namespace

void fillGradientOffsets(const GradientSource &source, int64_t *offsets) {
  const ReceivedSet &set = *source.set;
  const ReceivedStream &stream = *source.stream;
  for (size_t peer = 0; peer < source.beginOfPeer.size(); ++peer) {
    int64_t offset = source.beginOfPeer[peer];
    int64_t id = stream.firstIdOfPeer[peer];
    if (!source.pooled) { // every id has a gradient of its own
      for (; id < stream.firstIdOfPeer[peer + 1]; ++id, offset += source.stride)
        offsets[id] = offset;
      continue;
    }
    for (int64_t bag = set.firstBagOfPeer[peer];
         bag < set.firstBagOfPeer[peer + 1]; ++bag, offset += source.stride)
      for (; id < stream.offsets[bag + 1]; ++id)
        offsets[id] = offset;
  }
}

UpdateInputs::UpdateInputs(Device &device, std::span<Routed *const> routed,
                           std::span<Partials *const> gradients)
    : device(device), routed(routed), gradients(gradients) {
  allSlots.resize(device.slots.size());
  for (size_t i = 0; i < allSlots.size(); ++i)
    allSlots[i].slot = i;
  for (size_t i = 0; i < routed.size(); ++i)
    collect(i);
  for (SlotUpdate &slot : allSlots)
    if (slot.numIds > 0)
      slots.push_back(std::move(slot));
  chooseGradients();
  PhaseTimer timer(device.figures, Phase::Sort);
  sort();
}

void UpdateInputs::collect(size_t exchange) {
  receiveGradients(device, *routed[exchange], *gradients[exchange]);
  const ExchangeLayout &layout = device.layout(routed[exchange]->exchange);
  const StreamSet &owned = layout.owners[device.rank()];
  const StreamSet &local = layout.locals[device.rank()];
  // Kernels and sums see a slot's lookups in the order of the exchange.
  std::vector<const EntryLayout *> entries;
  for (const StreamSet *set : {&owned, &local})
    for (const EntryLayout &entry : set->entries)
      entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const EntryLayout *a, const EntryLayout *b) {
                     return a->lookup < b->lookup;
                   });
  for (const EntryLayout *entry : entries) {
    bool replicated = layout.results[entry->lookup].replicated;
    const Partials &from = *gradients[exchange];
    if (replicated)
      addSource(exchange, *entry, from.gathered, from.gatheredBlocks, local);
    else
      addSource(exchange, *entry, routed[exchange]->owned, from.receivedBlocks,
                owned);
  }
}

void UpdateInputs::addSource(size_t exchange, const EntryLayout &entry,
                             const ReceivedSet &set,
                             const std::vector<Block> &blocks,
                             const StreamSet &layout) {
  // A table without an optimizer is only read.
  if (!device.slots[static_cast<size_t>(entry.slot)].table().trained())
    return;
  size_t index = static_cast<size_t>(&entry - layout.entries.data());
  const ExchangeSpec &spec =
      device.manifest().exchanges[routed[exchange]->exchange];
  const ExchangeLookup &lookup = spec.lookups[entry.lookup];
  SlotUpdate &slot = allSlots[static_cast<size_t>(entry.slot)];
  GradientSource source;
  source.set = &set;
  source.stream = &set.streams[static_cast<size_t>(entry.stream)];
  source.exchange = exchange;
  source.idBytes = spec.idBytes();
  source.pooled = entry.pooled;
  if (lookup.paddingIdx)
    source.padding =
        *lookup.paddingIdx -
        layout.streams[static_cast<size_t>(entry.stream)].rows.begin;
  for (const Block &block : blocks)
    source.beginOfPeer.push_back(block.begin[index]);
  source.stride = blocks[0].stride[index];
  source.firstNumber = slot.numIds;
  slot.numIds += source.stream->numIds();
  if (slot.numIds >= int64_t{1} << 32)
    fail("a shard of table \"", device.slots[slot.slot].table().name, "\" has ",
         slot.numIds, " ids in one step; at most 2^32 - 1 work");
  slot.sources.push_back(std::move(source));
}

/// The kernels address all gradients of a slot from one pointer.
void UpdateInputs::chooseGradients() {
  bool shared = false;
  for (SlotUpdate &slot : slots) {
    size_t exchange = slot.sources.front().exchange;
    slot.gradients = gradients[exchange]->gradients;
    shared |= slot.sources.back().exchange != exchange;
  }
  if (shared)
    mergeGradients();
}

void UpdateInputs::mergeGradients() {
  std::vector<int64_t> begin;
  int64_t total = 0;
  for (const Partials *part : gradients) {
    begin.push_back(total);
    total += part->numFloats;
  }
  merged =
      device.buffers->acquireArray<float>(BufferKind::ReceivedGradients, total);
  device.threads.parallelFor(
      static_cast<int64_t>(gradients.size()), [&](int64_t i) {
        const Partials &part = *gradients[static_cast<size_t>(i)];
        std::memcpy(as<float>(merged) + begin[static_cast<size_t>(i)],
                    part.gradients,
                    static_cast<size_t>(part.numFloats) * sizeof(float));
      });
  for (SlotUpdate &slot : slots) {
    slot.gradients = as<float>(merged);
    for (GradientSource &source : slot.sources)
      for (int64_t &offset : source.beginOfPeer)
        offset += begin[source.exchange];
  }
}

void UpdateInputs::sort() {
  std::vector<std::pair<const SlotUpdate *, SortedRows *>> work;
  for (SlotUpdate &slot : slots) {
    std::vector<const ReceivedStream *> key;
    for (const GradientSource &source : slot.sources)
      key.push_back(source.stream);
    auto [group, isNew] = groups.try_emplace(key);
    slot.sorted = &group->second;
    if (isNew)
      work.push_back({&slot, &group->second});
  }
  device.threads.parallelFor(static_cast<int64_t>(work.size()), [&](int64_t i) {
    sortGroup(*work[static_cast<size_t>(i)].first,
              *work[static_cast<size_t>(i)].second);
  });
  device.threads.parallelFor(
      static_cast<int64_t>(slots.size()),
      [&](int64_t i) { fillSlot(slots[static_cast<size_t>(i)]); });
}

void UpdateInputs::sortGroup(const SlotUpdate &slot, SortedRows &sorted) {
  Buffer keys =
      device.buffers->acquireArray<RowKey>(BufferKind::Sort, slot.numIds);
  int64_t count = 0;
  for (const GradientSource &source : slot.sources) {
    int64_t ids = source.stream->numIds();
    for (int64_t j = 0; j < ids; ++j) {
      int64_t row = idAt(source, j);
      if (row != source.padding)
        as<RowKey>(keys)[count++] =
            makeRowKey(static_cast<uint64_t>(row),
                       static_cast<uint64_t>(source.firstNumber + j));
    }
  }
  sorted = sortRows(*device.buffers, as<RowKey>(keys), count, slot.numIds,
                    device.slots[slot.slot].spec().rows.size());
}

void UpdateInputs::fillSlot(SlotUpdate &slot) {
  const SortedRows &sorted = *slot.sorted;
  auto *order = as<uint32_t>(sorted.order);
  Buffer ofNumber =
      device.buffers->acquireArray<int64_t>(BufferKind::Sort, slot.numIds);
  slot.gradientOffsets =
      device.buffers->acquireArray<int64_t>(BufferKind::Sort, slot.numIds);
  auto *offsets = as<int64_t>(ofNumber);
  for (const GradientSource &source : slot.sources)
    fillGradientOffsets(source, offsets + source.firstNumber);
  for (int64_t k = 0; k < sorted.numIds; ++k)
    as<int64_t>(slot.gradientOffsets)[k] = offsets[order[k]];

  if (!device.program.slots[slot.slot].weighted)
    return;
  slot.sampleWeights =
      device.buffers->acquireArray<float>(BufferKind::Sort, slot.numIds);
  float *weights = as<float>(ofNumber);
  for (const GradientSource &source : slot.sources) {
    float *to = weights + source.firstNumber;
    const float *from = source.stream->weights;
    if (from)
      std::copy_n(from, source.stream->numIds(), to);
    else
      std::fill_n(to, source.stream->numIds(), 1.0f);
  }
  for (int64_t k = 0; k < sorted.numIds; ++k)
    as<float>(slot.sampleWeights)[k] = weights[order[k]];
}

} // namespace neuroshard::runtime
