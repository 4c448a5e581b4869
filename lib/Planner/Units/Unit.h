//===- Unit.h - The shards a search places together -------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H
#define NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H

#include "Footprint.h"
#include "neuroshard/Model/Shard.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Objective.h"

#include <memory>
#include <vector>

namespace neuroshard {

/// The statistics that a search looks at: one of SearchContext::periods, by
/// index, or their summary.
inline constexpr int kSummary = -1;

/// Load of one or more shards on a device under one set of statistics.
struct Demand {
  /// Its compute is that of the shards alone on a device of the first class.
  DeviceLoad load;
  /// Sum of the shards' embeddings per SearchContext::usedClasses, one after
  /// the other; empty without a SumEmbedding.
  std::vector<double> embedding;
  /// One per shard.
  std::vector<ShardWork> works;
};

/// Memory and load of shards that go to one device together. They depend on the
/// sizes of the shards, not on where in their tables these lie. The demand
/// itself is that of the summary.
struct ShardFacts : Demand {
  // First, because every edit of a local search reads it.
  Footprint footprint;
  /// Per SearchContext::periods, without the compute alone.
  std::vector<Demand> periods;
  MemoryTerms memory;

  int shardCount() const { return static_cast<int>(works.size()); }
  const Demand &in(int period) const {
    return period == kSummary ? *this : periods[static_cast<size_t>(period)];
  }
};

/// Shards that go to one device together: one shard, or one of each table of a
/// co-located set; a replicated table (on every device) is a unit, too.
struct Unit : ShardFacts {
  /// Without devices, unless replicated.
  std::vector<Shard> shards;
  std::vector<int> tables;
  /// The device it must be on; -1: any that its tables allow; kEverywhere: all
  /// devices.
  int forcedDevice = -1;
  bool writtenByHand = false;
  /// A hash of the tables and sizes of the shards.
  uint64_t sizeKey = 0;
  /// Do its tables have rules on devices or separation?
  bool restricted = false;

  static constexpr int kEverywhere = -2;

  double aloneMs() const { return load.compute.total(); }
  int64_t weightBytes() const { return memory.weightsBytes; }
  /// What it adds to a device's peak, at most.
  int64_t peakBytes() const { return memory.peakBytes(); }
};

using UnitPtr = std::shared_ptr<const Unit>;

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H
