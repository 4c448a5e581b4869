//===- MovedBytes.h - Cost of bytes moved since a previous plan -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEDBYTES_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEDBYTES_H

#include "Board.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace neuroshard {

/// The cost of the bytes that each device holds of each table beyond those it
/// held in a previous state. A board does not know which rows and columns a
/// piece has, so a device counts as keeping as many bytes of a table as it
/// held.
class MovedBytes {
public:
  /// `board` is in the previous state. Tables that `previous` does not have may
  /// go anywhere at no cost. `msPerByte`: cost of moving a byte.
  MovedBytes(const Board &board, const ShardingPlan &previous,
             double msPerByte);

  /// The cost of all moves so far.
  double costMs() const { return moved * msPerByte; }
  /// The same after an edit.
  double costAfter(const Edit &edit) const;
  /// Follows an edit; call it before the board applies the edit.
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
  /// By table: is it missing from the previous plan?
  std::vector<bool> isNew;
  double moved = 0;
  std::unordered_map<Place, Bytes, HashPlace> bytes;
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_MOVEDBYTES_H
