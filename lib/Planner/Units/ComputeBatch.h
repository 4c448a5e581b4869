//===- ComputeBatch.h - Many devices' compute in one model call -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H
#define NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H

#include "SearchContext.h"
#include "Unit.h"

#include <span>
#include <vector>

namespace neuroshard {

/// The head of a SumEmbedding of at most this size is cheaper to call than a
/// look-up of its result, and gains nothing from batches.
inline constexpr int kSmallEmbedding = 16;

/// Collects devices with their shards, then asks the model for the compute of
/// all of them in one call.
class ComputeBatch {
public:
  explicit ComputeBatch(const SearchContext &context);

  /// Drops the collected devices and their results.
  void clear();

  /// Adds a device of this class whose shards' embeddings add up to `sum` + the
  /// unit's; the model must have a SumEmbedding. `key`: contentsKey(), for the
  /// cache; 0 skips the cache. Returns the index of the result.
  size_t add(std::span<const double> sum, const Unit *unit, int shardCount,
             size_t classIndex, uint64_t key = 0);
  /// The same for a sum (SumEmbedding::size() numbers, returned) and a number
  /// of shards that the caller writes; both pointers are valid until the next
  /// call.
  double *addRow(size_t classIndex, size_t &result, int *&shardCount);
  /// Adds a device with these units / shards, for any model.
  size_t add(std::span<const Unit *const> units, size_t classIndex,
             uint64_t key = 0);

  size_t add(std::vector<const ShardWork *> shards, size_t classIndex);

  void run();
  const ComputeMs &operator[](size_t index) const { return results[index]; }

  /// Is a look-up in the cache cheaper than a call of the model?
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

/// The key of a device's contents after one more unit. Keys depend on the order
/// of the units, because the last bits of a sum of embeddings do.
uint64_t contentsKey(uint64_t contents, const Unit &added);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_COMPUTEBATCH_H
