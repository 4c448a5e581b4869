//===- Proposals.h - Random edits to judge ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H

#include "Board.h"

#include "neuroshard/Support/Random.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Draws random edits, most of which move load from slow devices to fast ones.
class Proposals {
public:
  Proposals(Board &board, uint64_t seed) : board(board), random(seed) {}

  /// An edit, which may not fit, or one of kind None. `critical`: devices to
  /// relieve.
  Edit draw(const std::vector<int> &critical);

  SplitMix64 &generator() { return random; }

private:
  int drawPiece(const std::vector<int> &critical);
  int drawTarget(int device);
  int drawSibling(int piece);
  Edit drawSplit(int piece);
  Edit drawSiblingStep(int piece, int sibling);

  Board &board;
  SplitMix64 random;
};

/// Rows of a region are cut at multiples of this, so that sizes repeat.
int64_t rowStep(const Region &region);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
