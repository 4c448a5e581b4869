//===- UnitOperations.h - Making and cutting units --------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_UNITS_UNITOPERATIONS_H
#define NEUROSHARD_LIB_PLANNER_UNITS_UNITOPERATIONS_H

#include "SearchContext.h"
#include "Unit.h"

#include <optional>
#include <vector>

namespace neuroshard {

Footprint footprintOf(const MemoryTerms &terms);

/// May a shard of the table have so many rows, where it has a cache?
bool mayHaveRows(const SearchContext &context, int table, int64_t rows);

/// The facts of a shard (without devices, unless replicated), made once per
/// size.
std::shared_ptr<const ShardFacts> factsOf(const SearchContext &context,
                                          int table, const Shard &shard);

/// May the unit's tables be on this device?
bool allowsDevice(const SearchContext &context, const Unit &unit, int device);

/// Is one of its tables separated from others?
bool isSeparated(const SearchContext &context, const Unit &unit);

/// Is it a table in one piece that may still be placed, and cut, in any way
/// that the table's rules allow?
bool isWholeTable(const SearchContext &context, const Unit &unit);

/// The number of devices that may hold a unit, plus 1 for a unit without any
/// rule on devices or separation. Units with less freedom are placed first.
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

/// The unit in two parts, the first with at most this share (in (0, 1)).
enum class Cut { Columns, Rows };
std::optional<std::vector<UnitPtr>> cutAtShare(const SearchContext &context,
                                               const Unit &unit, double share,
                                               Cut direction);

/// The cut by columns, unless the one by rows takes clearly less memory. Narrow
/// columns pad their rows and repeat the ids; row shards repeat the results,
/// which also costs time.
std::optional<std::vector<UnitPtr>>
betterCut(const std::optional<std::vector<UnitPtr>> &columns,
          const std::optional<std::vector<UnitPtr>> &rows);

/// Can the unit be cut at all?
bool canCut(const SearchContext &context, const Unit &unit);

/// Equal blocks of rows of one table, one on each of these devices.
std::vector<UnitPtr> rowBlocks(const SearchContext &context, int table,
                               const std::vector<int> &devices);

/// The groups of devices over which the table may be cut into row blocks under
/// the target: all devices, or one inner group; a single device, listed twice.
std::vector<std::vector<int>> rowBlockGroups(const SearchContext &context,
                                             int table);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_UNITS_UNITOPERATIONS_H
