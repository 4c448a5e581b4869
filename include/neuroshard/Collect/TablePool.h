//===- TablePool.h - Tables to draw random shard sets from ------*- C++ -*-===//

#ifndef NEUROSHARD_COLLECT_TABLEPOOL_H
#define NEUROSHARD_COLLECT_TABLEPOOL_H

#include "neuroshard/Model/ShardingProblem.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace neuroshard {

/// A table of the pool. Its width is drawn with each set.
struct PoolTable {
  int64_t rows = 0;
  /// Mean ids per sample.
  double pooling = 0;
};

/// A pool of tables and how their ids repeat.
struct TablePool {
  std::vector<PoolTable> tables;
  /// One for each table, at the pool's batch.
  std::shared_ptr<const std::vector<AccessStatistics>> access;

  /// Every fifth table is held out: no training sample uses it.
  static bool isHeldOut(size_t table) { return table % 5 == 0; }
};

/// A pool like the published one of the sharding papers (856 tables, 4.1
/// million rows and 15 ids per sample in the mean, batch 65536): the tables are
/// random, their joint statistics are those of
/// workloads/dlrm_datasets_locality.json.
TablePool makeTablePool(uint64_t seed);

/// Seed of the pool that all measurements draw from, so that a table held out
/// of one is held out of all.
inline constexpr uint64_t kPoolSeed = 856;

} // namespace neuroshard

#endif // NEUROSHARD_COLLECT_TABLEPOOL_H
