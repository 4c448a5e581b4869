//===- IdMap.h - Which id has which of a set of rows ------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDMAP_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDMAP_H

#include "Ids/EvictionOrder.h"
#include "Ids/FreeSlots.h"
#include "Ids/IdIndex.h"

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Gives ids rows of a fixed set, each id its own. A slot is a row of the set
/// and what is known of its id; free slots are taken by rising rows.
class IdMap {
public:
  /// `rows`: fewer than 2^31, in any order.
  IdMap(std::vector<int64_t> rows, EvictBy by);

  int64_t capacity() const { return static_cast<int64_t>(all.size()); }
  int64_t size() const { return capacity() - numFree(); }
  int64_t numFree() const { return free.size(); }

  /// The slot of an id, or IdIndex::kNone.
  int32_t find(int64_t id) const { return index.find(id); }
  /// Calls function(place, slot) for all ids, whose slots may be
  /// IdIndex::kNone. The function inserts and erases nothing.
  template <typename Function>
  void forSlots(std::span<const int64_t> ids, const Function &function) const;
  int64_t rowOf(int32_t slot) const { return all.uses[place(slot)].row; }
  int64_t countOf(int32_t slot) const { return all.uses[place(slot)].count; }

  /// Lookup `lookup` uses the slot.
  void use(int32_t slot, int64_t lookup);
  /// The same, for a batch that has the id; counts once, however often this is
  /// said.
  void see(int32_t slot, int64_t batch, int64_t lookup);
  /// Gives an id the free row that is lowest; there must be one.
  int32_t insert(int64_t id, int64_t count, int64_t batch);
  void erase(int32_t slot);
  /// Evicts up to `count` ids that no lookup from `firstHeld` on uses. Returns
  /// how many there were.
  int64_t evict(int64_t count, int64_t firstHeld);

  /// All slots, by row.
  std::vector<IdEntry> slots() const;
  /// Puts entries into the slots of their rows. Lets go of all others.
  void restore(std::span<const IdEntry> saved);

  /// Begins a group of changes that can be undone, up to the next.
  void beginGroup() { groups.emplace_back(); }
  /// Lets the oldest group stay.
  void keepGroup() { groups.pop_front(); }
  /// Undoes all groups.
  void undoGroups();
  /// All slots, by row, as they were before the oldest group.
  std::vector<IdEntry> slotsBefore() const;

  /// Without what undoing takes.
  int64_t bytes() const;

private:
  struct Change {
    int32_t slot;
    int64_t lastUse; ///< before.
    IdEntry before;
  };

  static constexpr size_t kAhead = 16; ///< what memory is asked for early.

  static size_t place(int32_t slot) { return static_cast<size_t>(slot); }
  void setFree();
  /// Lets a slot be as one that no id has had.
  void clear(size_t slot);
  /// Before a slot changes.
  void note(int32_t slot);

  IdSlots all;
  FreeSlots free;
  IdIndex index;
  EvictionOrder order;
  std::deque<std::vector<Change>> groups; ///< that can be undone.
};

/// Slots are found before they are used, so that their memory is there by then.
template <typename Function>
void IdMap::forSlots(std::span<const int64_t> ids,
                     const Function &function) const {
  std::array<size_t, kAhead> homes; // by place modulo kAhead
  std::array<int32_t, kAhead> found;
  for (size_t i = 0; i < ids.size() + 2 * kAhead; ++i) {
    if (i >= 2 * kAhead)
      function(i - 2 * kAhead, found[i % kAhead]);
    if (i >= kAhead && i - kAhead < ids.size()) {
      int32_t slot = index.find(ids[i - kAhead], homes[i % kAhead]);
      found[i % kAhead] = slot;
      if (slot != IdIndex::kNone)
        __builtin_prefetch(&all.uses[place(slot)], 1); // to be written
    }
    if (i < ids.size())
      homes[i % kAhead] = index.prefetch(ids[i]);
  }
}

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDMAP_H
