//===- EvictionOrder.h - Which ids lose their rows first --------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_EVICTIONORDER_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_EVICTIONORDER_H

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace neuroshard::runtime {

/// An id and its row. Sightings are counted by batches, `last` and `since`
/// are numbers of batches.
struct IdEntry {
  int64_t row = 0;
  int64_t count = 0; ///< batches that had the id; 0: the row is free.
  int64_t last = 0;  ///< the last of them.
  int64_t id = 0;
  int64_t since = 0; ///< when the id got its row.

  bool isUsed() const { return count > 0; }
  bool operator==(const IdEntry &) const = default;
};

/// What is known of the rows of a map, by slot.
struct IdSlots {
  /// What a batch reads and writes of an id, never in two lines of the cache.
  struct alignas(32) Use {
    int64_t lastUse = -1; ///< lookup; -1: none.
    int64_t row = 0, count = 0, last = 0;
  };
  struct Origin {
    int64_t id = 0, since = 0;
  };

  size_t size() const { return uses.size(); }
  bool isUsed(size_t slot) const { return uses[slot].count > 0; }
  IdEntry entry(size_t slot) const {
    const Use &use = uses[slot];
    return {use.row, use.count, use.last, origins[slot].id,
            origins[slot].since};
  }
  void setEntry(size_t slot, const IdEntry &entry) {
    uses[slot] = {uses[slot].lastUse, entry.row, entry.count, entry.last};
    origins[slot] = {entry.id, entry.since};
  }

  std::vector<Use> uses;
  std::vector<Origin> origins;
};

enum class EvictBy {
  Recency,   ///< the id that was not seen for longest (LRU).
  Frequency, ///< the one that was seen least (LFU), then by recency.
  Age,       ///< the one that has had its row for longest.
};

/// Finds the ids that lose their rows first; of equal ones, that of the lower
/// row. Sorts a part of the ids at a time: ids move back in the order when they
/// are seen, so that those in front stay the ones in front, with ids that are
/// new or have moved and still belong among them.
class EvictionOrder {
public:
  explicit EvictionOrder(EvictBy evictBy) : by(evictBy) {}

  /// To be called after a slot is taken into use or seen.
  void note(int32_t slot, const IdSlots &slots);
  /// The first `count` used slots that no lookup from `firstHeld` on uses, or
  /// as many as there are, which the caller frees.
  std::vector<int32_t> first(const IdSlots &slots, size_t count,
                             int64_t firstHeld);
  /// Forgets all.
  void clear();

private:
  /// Of a slot, when its id was as the numbers say. Slots are in the order of
  /// their rows.
  struct Key {
    int64_t first, second;
    int32_t slot;
    auto operator<=>(const Key &) const = default;
  };

  Key keyOf(int32_t slot, const IdSlots &slots) const;
  bool isEmpty() const { return next == sorted.size() && heap.empty(); }
  void push(Key key);
  Key pop();
  std::optional<Key> guessBound(const IdSlots &slots, size_t wanted,
                                int64_t firstHeld) const;
  /// Sorts the next part, with `count` slots that are not held, if there are.
  /// `taken`: slots that count as free.
  void refill(const IdSlots &slots, size_t count, int64_t firstHeld,
              std::vector<int32_t> taken);

  EvictBy by;
  /// Keys of all used slots up to `bound`, and former keys of some.
  std::vector<Key> sorted; ///< from `next` on.
  size_t next = 0;
  std::vector<Key> heap; ///< of slots noted since; the smallest first.
  std::optional<Key> bound;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_EVICTIONORDER_H
