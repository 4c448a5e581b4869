//===- CpuUpdateBuffers.cpp - Bytes of the buffers of an update on CPUs ---===//

#include "CpuUpdateBuffers.h"

#include "CopySums.h"
#include "ExchangeCounts.h"
#include "NumberBytes.h"
#include "neuroshard/Model/RowLayout.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace neuroshard {
namespace {

/// Grouping ids by row: keys and the same once more, distinct rows, where the
/// ids of each begin, and the order in 4 bytes.
constexpr int64_t rowSortBytes(int64_t ids) {
  return ids * (4 * kIndexBytes + 4) + kIndexBytes;
}

/// The buffers of an update on CPUs.
class CpuUpdateBuffers {
public:
  CpuUpdateBuffers(const ExchangePlan &plan,
                   const std::vector<ExchangeLayout> &layouts,
                   const StepLoad &load, std::vector<BufferBytes> &devices)
      : plan(plan), layouts(layouts), load(load),
        needsNorms(plan.tablesWithNormExchange()),
        copied(copiedRows(plan, load)), devices(devices) {
    for (size_t x = 0; x < layouts.size(); ++x) {
      counts.emplace_back(plan, x, load.exchanges[x]);
      gathered.push_back(
          counts.back().replicaUpdate(plan, x, layouts[x]).gathered.entries);
    }
  }

  void add() {
    for (size_t device = 0; device < devices.size(); ++device)
      addDevice(device);
  }

private:
  /// Exchange, whether of a replicated table, number of a stream, and the entry
  /// if some ranks alone read it, whose ids are sorted apart.
  using StreamKey = std::tuple<size_t, bool, int32_t, int32_t>;
  struct SlotIds {
    std::vector<StreamKey> streams;
    int64_t ids = 0;
    bool isWeighted = false;
  };

  void addDevice(size_t device) {
    const std::vector<int32_t> &shards = plan.bindings[device].slots;
    std::vector<SlotIds> slots(shards.size());
    for (size_t x = 0; x < layouts.size(); ++x) {
      const StreamSet &owned = layouts[x].owners[device];
      for (const EntryLayout &entry : owned.entries)
        addSource(x, owned, entry, false, slots);
      const StreamSet &local = layouts[x].locals[device];
      for (int32_t entry : gathered[x])
        addSource(x, local, local.entries[static_cast<size_t>(entry)], true,
                  slots);
    }
    std::map<std::vector<StreamKey>, int64_t> sorts;
    for (size_t s = 0; s < slots.size(); ++s) {
      const SlotIds &slot = slots[s];
      const ShardSpec &shard = plan.shards[static_cast<size_t>(shards[s])];
      if (const CopiedRows *rows = copiedRowsOf(shard)) {
        addCopy(*rows, device, slot);
        continue;
      }
      if (slot.ids == 0)
        continue;
      sorts[slot.streams] = slot.ids;
      addSlot(shard, slot, devices[device]);
    }
    for (const auto &[streams, ids] : sorts)
      devices[device][BufferKind::Sort] += rowSortBytes(ids);
  }

  void addSource(size_t exchange, const StreamSet &set,
                 const EntryLayout &entry, bool isReplicated,
                 std::vector<SlotIds> &slots) const {
    const ExchangeLookup &lookup =
        plan.exchanges[exchange].lookups[static_cast<size_t>(entry.lookup)];
    if (!plan.tables[static_cast<size_t>(lookup.table)].trained())
      return;
    SlotIds &slot = slots[static_cast<size_t>(entry.slot)];
    slot.streams.push_back({exchange, isReplicated, entry.stream,
                            entry.readers.areAll() ? -1 : entry.kernel});
    slot.ids += counts[exchange].idsOfReaders(set, entry);
    slot.isWeighted |= lookup.weighted;
  }

  const CopiedRows *copiedRowsOf(const ShardSpec &shard) const {
    auto found = std::ranges::find(copied, &shard, &CopiedRows::shard);
    return found == copied.end() ? nullptr : &*found;
  }

  /// The sums over the ids of a copy's readers, and the update by the sums of
  /// all copies. Nothing shares their sorts.
  void addCopy(const CopiedRows &rows, size_t device, const SlotIds &slot) {
    const ShardSpec &shard = *rows.shard;
    BufferBytes &bytes = devices[device];
    auto copy = static_cast<size_t>(
        std::ranges::find(shard.devices, static_cast<int32_t>(device)) -
        shard.devices.begin());
    if (slot.ids > 0) {
      bool isTwoPhase = needsNorms[static_cast<size_t>(shard.table)];
      bytes[BufferKind::Sort] += rowSortBytes(slot.ids) + placeBytes(slot);
      bytes[BufferKind::Norms] +=
          rows.rows[copy] *
          (paddedRowBytes(shard.cols.size(), ElementType::F32) +
           (isTwoPhase ? normBytes(shard) : 0));
    }
    if (rows.allRows == 0)
      return;
    SlotIds all = slot;
    all.ids = rows.allRows;
    bytes[BufferKind::Sort] += rowSortBytes(all.ids);
    addSlot(shard, all, bytes);
  }

  /// Of one row.
  int64_t normBytes(const ShardSpec &shard) const {
    return plan.tableOf(shard).normsPerRow() * kFloatBytes;
  }

  static int64_t placeBytes(const SlotIds &slot) {
    return slot.ids * (2 * kIndexBytes + (slot.isWeighted ? kFloatBytes : 0));
  }

  /// Places of gradients by number and by row, and the weights; sums of
  /// gradients and their norms before and after the exchange.
  void addSlot(const ShardSpec &shard, const SlotIds &slot,
               BufferBytes &bytes) const {
    bytes[BufferKind::Sort] += placeBytes(slot);
    if (shard.hasRowCache())
      bytes[BufferKind::Sort] += slot.ids * kIndexBytes; // of rows in the cache
    if (needsNorms[static_cast<size_t>(shard.table)])
      bytes[BufferKind::Norms] +=
          load.distinctRows(shard.table, shard.rows, {}) *
          (paddedRowBytes(shard.cols.size(), ElementType::F32) +
           2 * normBytes(shard));
  }

  const ExchangePlan &plan;
  const std::vector<ExchangeLayout> &layouts;
  const StepLoad &load;
  std::vector<bool> needsNorms;
  std::vector<CopiedRows> copied;
  std::vector<ExchangeCounts> counts;
  /// By exchange: entries of replicated tables whose gradients are gathered.
  std::vector<std::vector<int32_t>> gathered;
  std::vector<BufferBytes> &devices;
};

} // namespace

void addCpuUpdateBuffers(const ExchangePlan &plan,
                         const std::vector<ExchangeLayout> &layouts,
                         const StepLoad &load,
                         std::vector<BufferBytes> &devices) {
  CpuUpdateBuffers(plan, layouts, load, devices).add();
}

} // namespace neuroshard
