//===- TierOptions.h - Ways to keep a table in a tier -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOWERTIERS_TIEROPTIONS_H
#define NEUROSHARD_LIB_PLANNER_LOWERTIERS_TIEROPTIONS_H

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/FetchLoad.h"
#include "neuroshard/Planner/MemoryTerms.h"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace neuroshard {

/// Bytes of all devices together, of the memory of all hosts, and of all disks.
struct TierBytes {
  double device = 0;
  double host = 0;
  double disk = 0;

  TierBytes &operator+=(const TierBytes &other) {
    device += other.device;
    host += other.host;
    disk += other.disk;
    return *this;
  }
  TierBytes &operator-=(const TierBytes &other) {
    device -= other.device;
    host -= other.host;
    disk -= other.disk;
    return *this;
  }
  bool fitsInto(const TierBytes &room) const {
    return device <= room.device && host <= room.host && disk <= room.disk;
  }
};

/// What a shard adds to its device, its host and the host's disks, at most.
TierBytes tierBytes(const MemoryTerms &terms);

/// Links to host memory, and disks.
struct TierRates {
  double hostGBps = 0;
  Disk disks;

  /// Of transfers with both, one after the other.
  double msOf(const FetchLoad &load) const;
};

/// One way to keep a table or a shard: in device memory, or in a lower tier
/// with a cache.
struct TierOption {
  Tier tier = Tier::Hbm;
  int64_t cacheRows = 0;
  TierBytes bytes;
  double ms = 0; ///< of a step's fetches.
};

/// Of one shard, whose table has these features and this demand: that in device
/// memory first, then those in `tiers`.
std::vector<TierOption> shardOptions(const ShardingProblem &problem,
                                     const Table &table,
                                     const std::vector<int> &features,
                                     const RowDemand &demand,
                                     const Shard &shard, const TierRates &rates,
                                     std::span<const Tier> tiers);

/// Options of a table as a whole, those in device memory first. A table that
/// may not be cut has none that are too large for every device.
struct TieredTable {
  int table = 0;
  std::vector<TierOption> options;
};

/// Whether tables may be cut, as far as their constraints allow it.
enum class Cuts { Any, None };

/// Of each table that may be in `tiers`, which are below device memory: not
/// those with shards written by hand or with a cache share. Their fetches take
/// as long as if the links of all devices and the disks of all hosts shared
/// them evenly. `problem` has no snapshots.
std::vector<TieredTable> tierOptions(const ShardingProblem &problem,
                                     std::span<const Tier> tiers,
                                     Cuts cuts = Cuts::Any);

/// What the devices and hosts of a problem have for the tables of
/// tierOptions(problem, tiers), if all devices have row caches. Where a disk's
/// size is not known, it is without limit.
TierBytes roomForTables(const ShardingProblem &problem,
                        std::span<const Tier> tiers);

/// That, and where what row caches share is much of it, what there is if fewer
/// devices have caches, or fewer or none of them such of tier "ssd".
std::vector<TierBytes> roomsForTables(const ShardingProblem &problem,
                                      std::span<const Tier> tiers);

/// The tiers among `tiers` that the target runs on the problem's devices, with
/// caches of rows.
std::vector<Tier> usableTiers(const ShardingProblem &problem,
                              std::span<const Tier> tiers);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOWERTIERS_TIEROPTIONS_H
