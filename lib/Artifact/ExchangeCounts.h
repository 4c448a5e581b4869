//===- ExchangeCounts.h - Sizes of one step's messages ----------*- C++ -*-===//
//
// What one rank brings to an exchange for one set of streams, by the engine
// that packs it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_ARTIFACT_EXCHANGECOUNTS_H
#define NEUROSHARD_LIB_ARTIFACT_EXCHANGECOUNTS_H

#include "neuroshard/Artifact/ExchangeSizes.h"
#include "neuroshard/Artifact/StepLoad.h"

#include <functional>
#include <vector>

namespace neuroshard {

class ExchangeCounts {
public:
  ExchangeCounts(const ExchangeSpec &spec, const ExchangeLoad &load);

  int64_t idsOf(const StreamLayout &stream, size_t rank) const {
    return load.idsOfBucket[rank][static_cast<size_t>(stream.bucket)];
  }
  int64_t idsOfAll(const StreamLayout &stream) const;

  /// On CPUs: the bytes of the ids, and the values for them.
  int64_t payloadBytes(const StreamSet &set, size_t rank) const;
  Block blockOf(const StreamSet &set, size_t rank) const;

  /// On GPUs: lengths of 4 bytes for each bag, or the number of ids if not
  /// pooled; ids; weights.
  int64_t unpackedIdBytes(const StreamSet &set, size_t rank) const;
  int64_t paddedValues(const StreamSet &set, size_t rank) const;

  const ExchangeSpec &spec;
  const ExchangeLoad &load;
  size_t count; ///< of ranks.
  /// Ranks that bring as much as the one before them, of which a planner has
  /// many.
  std::vector<bool> likeBefore;
};

/// Calls add(sender, receiver, bytes) for the norms that owners of columns of
/// the same rows send each other.
void countNorms(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine,
                const std::function<void(size_t, size_t, int64_t)> &add);

/// How many norms an owner of columns keeps in a step, if its engine does not
/// wait for the number of distinct rows.
int64_t mostNorms(const ExchangePlan &plan,
                  const std::vector<ExchangeLayout> &layouts,
                  const StepLoad &load, const ShardSpec &shard);

/// Shards of each table that exchange norms with others: those of some columns.
std::vector<std::vector<const ShardSpec *>>
shardsWithNorms(const ExchangePlan &plan);

/// Ranges of rows are equal or have nothing in common. The engine on GPUs then
/// sends as many norms as there may be, without waiting for the device.
bool haveEqualRows(const std::vector<const ShardSpec *> &shards);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_ARTIFACT_EXCHANGECOUNTS_H
