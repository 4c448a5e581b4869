//===- GridBoard.h - Parts of tables on groups, by their prices -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_GROUPS_GRIDBOARD_H
#define NEUROSHARD_LIB_PLANNER_GROUPS_GRIDBOARD_H

#include "GridPrices.h"
#include "neuroshard/Support/Random.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace neuroshard {

/// A grid of a table with the prices of its parts, which have two widths.
struct PricedGrid {
  Grid grid;
  PartPrice wide, narrow;
  std::vector<bool> isWide; ///< by range of columns.

  const PartPrice &priceOf(int part) const {
    return isWide[static_cast<size_t>(part % grid.columns)] ? wide : narrow;
  }
  /// Of all parts.
  double totalMs() const;
};

/// A table and the grids that it may have, by rows, then by columns.
struct GridTable {
  int table = 0;
  std::vector<PricedGrid> grids;
};

/// Which grid each table has, and on which group each of its parts is.
struct GridState {
  std::vector<size_t> grids;            ///< by GridTable.
  std::vector<std::vector<int>> groups; ///< by GridTable, by part.

  bool operator==(const GridState &) const = default;
};

/// A state and what each group has of it. The energy is the sum over the stages
/// of the time of the slowest group, smoothed: it also falls when one of
/// several equally slow groups gets faster.
class GridBoard {
public:
  /// `memoryBytes`: of a device, for parts.
  GridBoard(const std::vector<GridTable> &tables, int groupCount,
            int64_t memoryBytes);

  /// Places all tables, cut as little as even groups allow; false if one finds
  /// no room.
  bool placeAll();
  /// `steps` random changes. Those that raise the energy by more than a share
  /// of it, `heat` at the beginning, are seldom kept. Ends early if `isLate`.
  void anneal(int64_t steps, double heat, SplitMix64 &random,
              const std::function<bool()> &isLate);
  /// The state after a random change, if its energy is at most the limit.
  std::optional<GridState> changed(SplitMix64 &random, double limitMs);

  double energy() const;
  const GridState &state() const { return current; }
  void set(const GridState &state);

private:
  struct Group {
    StageMs ms = {};
    StageMs powers = {};
    int64_t bytes = 0;
  };
  /// One table before a change.
  struct Before {
    size_t table;
    size_t grid;
    std::vector<int> groups;
  };

  double power(double ms) const;
  StageMs sumsOfPowers() const;
  void add(size_t table, int part, int group, double sign);
  int bestGroup(const PartPrice &price) const;
  bool placeParts(size_t table, size_t grid);
  void removeParts(size_t table);
  void remember(size_t table);
  void undo();
  /// One random change; false if there was no room.
  bool change(SplitMix64 &random);
  bool recut(SplitMix64 &random);
  bool movePart(SplitMix64 &random);
  bool swapParts(SplitMix64 &random);
  bool hasRoom(int group, const PartPrice &price) const {
    return groups[static_cast<size_t>(group)].bytes + price.bytes <=
           memoryBytes;
  }
  const PartPrice &priceOf(size_t table, int part) const {
    return tables[table].grids[current.grids[table]].priceOf(part);
  }
  std::vector<size_t> grids(double limitMs) const;

  const std::vector<GridTable> &tables;
  int64_t memoryBytes;
  double scale = 1; ///< of times, so that their powers are near 1.
  std::vector<Group> groups;
  GridState current;
  std::vector<Before> before; ///< of the last change, oldest first.
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_GROUPS_GRIDBOARD_H
