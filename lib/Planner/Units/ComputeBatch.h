//===- ComputeBatch.h - Many devices' compute in one model call -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H
#define NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H

#include "SearchContext.h"
#include "Unit.h"

#include <span>
#include <vector>

namespace neuroshard {

/// A head on at most this many numbers is cheaper than looking its result up,
/// or than collecting many for one call.
inline constexpr int kSmallEmbedding = 16;

/// Collects devices, then asks the model for all of them at once.
class ComputeBatch {
public:
  explicit ComputeBatch(const SearchContext &context);

  /// Forgets what was collected.
  void clear();

  /// A device of this class whose shards' embeddings add up to `sum` + the
  /// unit's; the model must have a SumEmbedding. A key of 0 is never looked
  /// up. Returns the index of the result.
  size_t add(std::span<const double> sum, const Unit *unit, int shardCount,
             size_t classIndex, uint64_t key = 0);
  /// The same, for a sum and a number of shards that the caller writes, valid
  /// until the next call: size() numbers.
  double *addRow(size_t classIndex, size_t &result, int *&shardCount);
  /// A device with these units / shards, for any model.
  size_t add(std::span<const Unit *const> units, size_t classIndex,
             uint64_t key = 0);

  size_t add(std::vector<const ShardWork *> shards, size_t classIndex);

  void run();
  const ComputeMs &operator[](size_t index) const { return results[index]; }

  /// Whether a look-up is cheaper than the model.
  bool worthCaching() const { return caching; }

private:
  struct PerClass {
    std::vector<double> sums;
    std::vector<int> counts;
    std::vector<ComputeMs> times;
    std::vector<size_t> results;
    std::vector<uint64_t> keys;
  };
  bool known(uint64_t key);

  const SearchContext &context;
  const SumEmbedding *embedding;
  bool caching;
  std::vector<PerClass> classes;
  std::vector<ShardSet> sets;
  std::vector<size_t> setResults;
  std::vector<uint64_t> setKeys;
  std::vector<ComputeMs> results;
};

/// The key of a device's contents after one more unit. Order counts: the same
/// units added in another order give another sum in its last bits.
uint64_t contentsKey(uint64_t contents, const Unit &added);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H
