//===- MigrationCost.h - Cost of migrating from a previous plan -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MIGRATIONCOST_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MIGRATIONCOST_H

#include "Board.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace neuroshard {

/// How many bytes of each table devices hold more than in a previous state.
/// A board knows sizes, not places, so bytes of a table that a device has had
/// count as kept, whichever they are.
class MigrationCost {
public:
  /// The board is in the previous state, but for tables that `previous` does
  /// not have: they have moved nowhere yet. `msPerByte`: what moving a byte
  /// costs.
  MigrationCost(const Board &board, const ShardingPlan &previous,
                double msPerByte);

  /// Of all moves so far.
  double costMs() const { return moved * msPerByte; }
  /// The same after a step.
  double costAfter(const Edit &edit) const;
  /// Follows a step; before the board does.
  void apply(const Edit &edit);

private:
  using Place = std::pair<int, int>; // device, table
  struct HashPlace {
    size_t operator()(const Place &place) const {
      return HashNumbers<2>()({place.first, place.second});
    }
  };
  struct Bytes {
    double before = 0;
    double now = 0;
  };
  using Changes = std::vector<std::pair<Place, double>>;

  void add(Changes &changes, int device, const ShardFacts *facts,
           double sign) const;
  Changes changesOf(const Edit &edit) const;
  Bytes at(const Place &place) const;

  const Board &board;
  const double msPerByte;
  /// By table: not in the previous plan.
  std::vector<bool> isNew;
  double moved = 0;
  std::unordered_map<Place, Bytes, HashPlace> bytes;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MIGRATIONCOST_H
