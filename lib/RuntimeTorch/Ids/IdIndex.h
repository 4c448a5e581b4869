//===- IdIndex.h - Hash table from ids to slots -----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDINDEX_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDINDEX_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard::runtime {

/// Exact, for all ids of 64 bits: open addressing with linear probing. At most
/// two thirds of the places are taken, so that a search ends soon.
class IdIndex {
public:
  static constexpr int32_t kNone = -1;

  /// For at most `size` ids.
  explicit IdIndex(int64_t size);

  /// The slot of an id, or kNone.
  int32_t find(int64_t id) const { return find(id, homeOf(id)); }
  /// The same, once prefetch() has given `home`.
  int32_t find(int64_t id, size_t home) const;
  /// Loads the place of an id ahead of time.
  size_t prefetch(int64_t id) const;
  /// The id must not be there, and `slot` not be kNone.
  void insert(int64_t id, int32_t slot);
  /// The id must be there.
  void erase(int64_t id);
  void clear();

  int64_t bytes() const;
  /// What an index for `size` ids takes.
  static int64_t bytesFor(int64_t size);

private:
  static size_t placesFor(int64_t size);
  size_t homeOf(int64_t id) const;
  /// The place of an id, or the free one where the search for it ends.
  size_t placeOf(int64_t id) const { return placeOf(id, homeOf(id)); }
  size_t placeOf(int64_t id, size_t home) const;
  size_t next(size_t place) const { return (place + 1) & mask; }

  struct Place {
    int64_t id = 0;
    int32_t slot = kNone; ///< kNone: the place is free.
  };

  size_t mask;
  std::vector<Place> places;
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDINDEX_H
