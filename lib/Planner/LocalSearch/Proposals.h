//===- Proposals.h - Random steps from a board ------------------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H

#include "Board.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Random numbers that are the same everywhere (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In [0, count).
  int below(size_t count) {
    return static_cast<int>(((next() >> 32) * count) >> 32);
  }
  /// In [0, 1).
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

private:
  uint64_t state;
};

/// Draws steps: most of them away from slow devices, onto fast ones.
class Proposals {
public:
  Proposals(Board &board, uint64_t seed) : board(board), random(seed) {}

  /// A step, fitting or not, or none. `critical`: devices to relieve.
  Edit draw(const std::vector<int> &critical);

  Random &generator() { return random; }

private:
  int drawPiece(const std::vector<int> &critical);
  int drawTarget(int device);
  int drawSibling(int piece);
  Edit drawSplit(int piece);
  Edit drawSiblingStep(int piece, int sibling);

  Board &board;
  Random random;
};

/// Rows are cut at multiples of this, so that sizes repeat.
int64_t rowStep(const Region &region);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_PROPOSALS_H
