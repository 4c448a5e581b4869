//===- Footprint.h - Memory that decides whether shards fit -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_FOOTPRINT_H
#define NEUROSHARD_LIB_PLANNER_UNITS_FOOTPRINT_H

#include "Memory/CacheMemory.h"
#include "neuroshard/Planner/MemoryTerms.h"

#include <algorithm>
#include <cstdint>

namespace neuroshard {

/// The sums of MemoryTerms that decide whether a placement fits.
struct Footprint {
  /// Alive all the time / in the forward / in the backward phase.
  int64_t fixedBytes = 0;
  int64_t forwardBytes = 0;
  int64_t backwardBytes = 0;
  /// In the memory of the device's host, and on its disks.
  int64_t hostBytes = 0;
  int64_t diskBytes = 0;
  /// Shards with row caches by tier: of what those on a device share, which no
  /// sum has, SharedByCaches tells the bytes.
  int32_t hostCaches = 0;
  int32_t diskCaches = 0;

  /// Without what row caches share.
  int64_t peakBytes() const {
    return fixedBytes + std::max(forwardBytes, backwardBytes);
  }
  bool hasCaches() const { return (hostCaches | diskCaches) != 0; }
  Footprint &operator+=(const Footprint &other) {
    fixedBytes += other.fixedBytes;
    forwardBytes += other.forwardBytes;
    backwardBytes += other.backwardBytes;
    hostBytes += other.hostBytes;
    diskBytes += other.diskBytes;
    hostCaches += other.hostCaches;
    diskCaches += other.diskCaches;
    return *this;
  }
  Footprint &operator-=(const Footprint &other) {
    fixedBytes -= other.fixedBytes;
    forwardBytes -= other.forwardBytes;
    backwardBytes -= other.backwardBytes;
    hostBytes -= other.hostBytes;
    diskBytes -= other.diskBytes;
    hostCaches -= other.hostCaches;
    diskCaches -= other.diskCaches;
    return *this;
  }
};

/// What the row caches of a device take once, however many there are:
/// cacheStagingBytes() of a problem.
class SharedByCaches {
public:
  explicit SharedByCaches(const ShardingProblem &problem)
      : ofHostTier(cacheStagingBytes(problem, Tier::Dram)),
        ofDiskTier(cacheStagingBytes(problem, Tier::Ssd)) {}

  /// Of a device that holds the shards of this sum.
  CacheBytes bytesOf(const Footprint &sum) const {
    CacheBytes most;
    if (sum.hostCaches > 0)
      most = ofHostTier;
    return sum.diskCaches > 0 ? mostOf(most, ofDiskTier) : most;
  }

private:
  CacheBytes ofHostTier, ofDiskTier;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_FOOTPRINT_H
