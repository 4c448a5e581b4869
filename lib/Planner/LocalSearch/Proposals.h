//===- Proposals.h - Random moves to judge ----------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H

#include "Board.h"

#include "neuroshard/Support/Random.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Draws steps: most of them away from slow devices, onto fast ones.
class Proposals {
public:
  Proposals(Board &board, uint64_t seed) : board(board), random(seed) {}

  /// A step, fitting or not, or none. `critical`: devices to relieve.
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

/// Rows are cut at multiples of this, so that sizes repeat.
int64_t rowStep(const Region &region);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
