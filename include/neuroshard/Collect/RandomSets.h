//===- RandomSets.h - Random shard sets to measure --------------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_RANDOMSETS_H
#define NEUROSHARD_COLLECT_RANDOMSETS_H

#include "neuroshard/Collect/Measurement.h"
#include "neuroshard/Collect/TablePool.h"

#include <cstdint>

namespace neuroshard {

struct RandomSetOptions {
  /// Weights and optimizer state of a set.
  int64_t memoryBytes = int64_t{2} << 30;
  /// Ids of a batch over all tables.
  int64_t maxLookups = 500000;
  /// Multiplies the batches, for devices that small ones leave idle.
  int64_t batchFactor = 1;
  /// Set by isHeldOut: draw only from held-out tables, or only from others.
  bool heldOut = false;
};

/// The set number `index` of a pool and seed: mostly 1 to 15 tables, sometimes
/// up to 120 small ones; dims 4 to 512; whole tables, row shards and column
/// shards; f32, f16, bf16; every optimizer; batches 512 to 16384; now and then
/// weighted, unpooled, or several features of one table. Names of tables are
/// their indices in the pool. The same arguments give the same set.
MeasuredSet makeRandomSet(const TablePool &pool,
                          const RandomSetOptions &options, uint64_t seed,
                          int64_t index);

/// The pool index of a table of such a set.
int poolIndex(const Table &table);

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_RANDOMSETS_H
