//===- Unit.h - What a search places on a device ----------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H
#define NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H

#include "SearchContext.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace neuroshard {

/// What decides whether something fits: MemoryTerms in short.
struct Footprint {
  /// Alive all the time / in the forward / in the backward phase.
  int64_t fixedBytes = 0;
  int64_t forwardBytes = 0;
  int64_t backwardBytes = 0;

  int64_t peakBytes() const {
    return fixedBytes + std::max(forwardBytes, backwardBytes);
  }
  Footprint &operator+=(const Footprint &other) {
    fixedBytes += other.fixedBytes;
    forwardBytes += other.forwardBytes;
    backwardBytes += other.backwardBytes;
    return *this;
  }
  Footprint &operator-=(const Footprint &other) {
    fixedBytes -= other.fixedBytes;
    forwardBytes -= other.forwardBytes;
    backwardBytes -= other.backwardBytes;
    return *this;
  }
};

/// load += sign x other, but for compute.
inline void addLoads(DeviceLoad &load, const DeviceLoad &other, double sign) {
  load.dims += sign * other.dims;
  load.inputBytes += sign * other.inputBytes;
  load.forwardBytes += sign * other.forwardBytes;
  load.backwardBytes += sign * other.backwardBytes;
}

Footprint footprintOf(const MemoryTerms &terms);

/// What shards ask of a device under one set of statistics.
struct Demand {
  /// Its compute is that of the shards alone on a device of the first class.
  DeviceLoad load;
  /// Sum of the shards' embeddings per SearchContext::usedClasses, one after
  /// the other; empty without a SumEmbedding.
  std::vector<double> embedding;
  /// One per shard.
  std::vector<ShardWork> works;
};

/// Shards that go to one device together: one shard, or one of each table of a
/// co-located set; a replicated table (on every device) is a unit, too.
struct Unit : Demand {
  /// Without devices, unless replicated.
  std::vector<Shard> shards;
  std::vector<int> tables;
  /// Per SearchContext::periods, without the compute alone.
  std::vector<Demand> periods;
  MemoryTerms memory;
  /// Where it must go; -1: anywhere allowed; kEverywhere: on all devices.
  int forcedDevice = -1;
  bool writtenByHand = false;
  Footprint footprint;
  /// The same for units of equal pieces, wherever in their tables they lie.
  uint64_t sizeKey = 0;
  /// Its tables have rules on devices or separation.
  bool restricted = false;

  static constexpr int kEverywhere = -2;

  double aloneMs() const { return load.compute.total(); }
  int64_t weightBytes() const { return memory.weightsBytes; }
  /// What it adds to a device's peak, at most.
  int64_t peakBytes() const { return memory.peakBytes(); }
};

using UnitPtr = std::shared_ptr<const Unit>;

/// May the unit's tables be on this device?
bool allowsDevice(const SearchContext &context, const Unit &unit, int device);

/// Must others keep away from it?
bool isSeparated(const SearchContext &context, const Unit &unit);

/// Is it a table in one piece that may still be placed, and cut, in any way
/// that the table's rules allow?
bool isWholeTable(const SearchContext &context, const Unit &unit);

/// How many devices a unit can go to; those with fewer choose first. A unit
/// that others must avoid comes before those that are free altogether.
int freedomOf(const SearchContext &context, const Unit &unit);

/// Makes a unit of these rectangles (one per table).
UnitPtr makeUnit(const SearchContext &context, std::vector<Shard> shards,
                 int forcedDevice = -1, bool writtenByHand = false);

/// The unit cut into `parts` along the columns / rows, as evenly as alignment
/// allows; nothing when a rule or the size forbids it.
std::optional<std::vector<UnitPtr>> splitColumns(const SearchContext &context,
                                                 const Unit &unit, int parts);
std::optional<std::vector<UnitPtr>> splitRows(const SearchContext &context,
                                              const Unit &unit, int parts);

/// The published halving: only when half the width is a multiple of 4.
std::optional<std::vector<UnitPtr>> halveColumns(const SearchContext &context,
                                                 const Unit &unit);

/// Two parts, the first with at most this share (in (0, 1)) of the unit.
enum class Cut { Columns, Rows };
std::optional<std::vector<UnitPtr>> cutAtShare(const SearchContext &context,
                                               const Unit &unit, double share,
                                               Cut direction);

/// Columns, unless rows take clearly less memory: narrow columns pad their rows
/// and repeat the ids, row shards repeat the results, which also costs time.
std::optional<std::vector<UnitPtr>>
betterCut(const std::optional<std::vector<UnitPtr>> &columns,
          const std::optional<std::vector<UnitPtr>> &rows);

/// Can the unit be cut at all?
bool canCut(const SearchContext &context, const Unit &unit);

/// Two units of one table (or set) as one, when their rectangles adjoin.
UnitPtr mergeUnits(const SearchContext &context, const Unit &a, const Unit &b);

/// The units of a problem before any search: what was written by hand, the
/// rest of each table whole, and tables whose allowed kinds leave no choice in
/// their one form. A diagnosis when a rule cannot be met.
tl::expected<std::vector<UnitPtr>, Diagnosis>
initialUnits(const SearchContext &context);

/// Equal blocks of rows of one table, one on each of these devices.
std::vector<UnitPtr> rowBlocks(const SearchContext &context, int table,
                               const std::vector<int> &devices);

/// May the table be cut into row blocks over these devices under the target?
/// All devices, or one inner group; a single device twice.
std::vector<std::vector<int>> rowBlockGroups(const SearchContext &context,
                                             int table);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_UNIT_H
