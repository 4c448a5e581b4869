//===- IdOwner.h - A rank's part of the map of a table's ids ----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDOWNER_H
#define NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDOWNER_H

#include "Ids/DistinctIds.h"
#include "Ids/IdMap.h"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace neuroshard::runtime {

/// What becomes of an id that is due for a row when all are taken.
enum class WhenFull {
  Evict,  ///< the id that EvictBy says loses its row.
  Share,  ///< it reads the shared row.
  Refuse, ///< the step ends with an error.
};

struct IdPolicy {
  int64_t admitAfter = 1; ///< batches with an id before it gets a row.
  EvictBy evictBy = EvictBy::Recency;
  WhenFull whenFull = WhenFull::Evict;
  int64_t sharedRow = 0; ///< what ids without a row of their own read.
  /// Ids that are counted before they have a row; of more, that which was not
  /// seen for longest is forgotten.
  int64_t numCandidates = 0;
};

/// Since the owner was made.
struct IdFigures {
  int64_t admitted = 0;
  int64_t evicted = 0;
  int64_t refused = 0;   ///< ids of a batch that were due and got no row.
  int64_t forgotten = 0; ///< candidates.
};

struct NewRow {
  int64_t row;
  int64_t id;
  bool operator==(const NewRow &) const = default;
};

/// The rows of a lookup's ids. Results of IdOwner are valid until its next
/// call.
struct Translated {
  std::vector<int64_t> rows;
  std::vector<NewRow> admitted;   ///< rows that have other ids than before.
  std::optional<int64_t> refused; ///< the first id, with WhenFull::Refuse.
};

class IdOwner {
public:
  IdOwner(std::vector<int64_t> rows, const IdPolicy &policy);

  /// For training: counts the ids of a batch, each once; admits those that are
  /// due. Lookups from `firstHeld` up to this one, which is `lookup`, use their
  /// rows still, so that they are not evicted.
  const Translated &train(std::span<const int64_t> ids, int64_t lookup,
                          int64_t firstHeld);
  /// Changes nothing; ids without a row read the shared one.
  const Translated &find(std::span<const int64_t> ids, int64_t lookup);

  /// Lets the next call be undone, which maps a batch ahead of its step.
  void beginAhead();
  /// The step of the oldest such call has begun.
  void keepAhead();
  /// Undoes all such calls whose steps have not begun.
  void undoAhead();

  const IdMap &map() const { return ids; }
  const IdMap &candidates() const { return waiting; }
  // Without what was mapped ahead. Other threads may ask for it.
  std::vector<IdEntry> entriesBefore() const;
  std::vector<IdEntry> candidatesBefore() const;
  IdFigures figures() const;
  int64_t batches() const;
  /// `saved`: of rows that this owner has.
  void restore(std::span<const IdEntry> saved,
               std::span<const IdEntry> savedCandidates, int64_t batches);

  int64_t bytes() const { return ids.bytes() + waiting.bytes(); }

private:
  struct Due {
    int64_t id;
    int64_t count;
  };
  /// Counts ids without a row. Returns those that are due.
  std::vector<Due> countUnknown(std::span<const int64_t> distinct);
  void admit(const std::vector<Due> &due, int64_t lookup, int64_t firstHeld);
  void beginResult(size_t numIds);

  IdPolicy policy;
  IdMap ids;
  IdMap waiting;
  // Of the last call.
  DistinctFinder finder;
  std::vector<int64_t> unknown;
  std::vector<size_t> unknownPlaces; ///< among the ids given.
  Translated result;
  IdFigures sums;
  int64_t batch = 0; ///< that were trained.
  struct Before {
    IdFigures sums;
    int64_t batch;
  };
  std::deque<Before> ahead; ///< calls that can be undone.
  mutable std::mutex mutex; ///< guards the maps and what is counted.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIMETORCH_IDS_IDOWNER_H
