//===- IdGenerator.h - Random ids with a reuse histogram --------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_IDGENERATOR_H
#define NEUROSHARD_COLLECT_IDGENERATOR_H

#include "neuroshard/Model/ShardingProblem.h"

#include <array>
#include <cstdint>

namespace neuroshard {

/// A bijection of [0, size): four rounds of a Feistel network on the next
/// power of four, walked until the value is inside.
class Permutation {
public:
  Permutation(uint64_t size, uint64_t key);
  uint64_t operator()(uint64_t value) const;

private:
  uint64_t size;
  std::array<uint64_t, 4> keys;
  unsigned halfBits;
};

/// Draws the row of each lookup of a table, so that a batch as large as the
/// one the statistics were measured at shows their histogram, and a smaller
/// batch is a random part of such a batch. Batch follows batch: hot rows come
/// back, rows seen once or twice are others in the next one.
class IdGenerator {
public:
  /// `lookupsMeasured`: lookups of the table in a batch of `access.batch`.
  /// Without statistics ids are uniform over the rows.
  IdGenerator(const AccessStatistics *access, double lookupsMeasured,
              int64_t rows, uint64_t seed);

  int64_t next();

  /// Lookups of a batch that shows the histogram: `lookupsMeasured` but for the
  /// rounding of ids to whole ones. 0 without statistics.
  int64_t batchLookups() const { return static_cast<int64_t>(lookups); }

private:
  /// Ids of one bin: pairs of which one is seen `low`, the other `high` times.
  struct Bin {
    uint64_t firstLookup = 0;
    uint64_t firstRank = 0;
    uint64_t ids = 0;
    uint64_t low = 1;
    uint64_t high = 1;
  };

  /// Sets the ranges of the bins for about `ids` distinct ids.
  void fillBins(const AccessStatistics &access, double ids);
  void beginEpoch();
  uint64_t rankOf(uint64_t lookup) const;

  std::array<Bin, kReuseBins> bins;
  uint64_t lookups = 0;
  /// Ids of the bins that are new in every batch, and of the others.
  uint64_t coldIds = 0;
  uint64_t hotIds = 0;
  uint64_t rows;
  uint64_t seed;
  uint64_t epoch = 0;
  uint64_t position = 0;
  Permutation order;
  Permutation place;
};

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_IDGENERATOR_H
