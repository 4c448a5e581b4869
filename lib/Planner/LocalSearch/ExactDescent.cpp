//===- ExactDescent.cpp - Moves and swaps by the exact cost ---------------===//
///
/// \file
/// Estimates do not see what travels while a slower device still computes
/// (CostModel::arrivalsMs), so the last steps are judged by the objective.
//===----------------------------------------------------------------------===//

#include "LocalSearch.h"

#include "EditBatch.h"

using namespace neuroshard;

namespace {

/// Power of the p-norm, which nothing here asks for.
constexpr int kPower = 16;

class ExactDescent {
public:
  ExactDescent(Board &board, int64_t budget, int64_t &evaluations)
      : board(board), budget(budget), evaluations(evaluations),
        cost(board, kPower), batch(board) {}

  double run() {
    bool improved = true;
    while (improved && mayGoOn()) {
      improved = false;
      for (int piece = 0; piece < board.pieceSlots() && mayGoOn(); ++piece)
        improved |= improve(piece);
    }
    return cost.costMs();
  }

private:
  bool mayGoOn() const {
    return budget > 0 && !board.context().deadlinePassed();
  }
  bool isMovable(int piece) const {
    return board.piece(piece).device >= 0 && board.piece(piece).movable;
  }
  void consider(const Edit &edit) {
    if (edit.kind != Edit::None && budget > 0 && board.fits(edit)) {
      batch.add(edit);
      --budget;
    }
  }
  bool improve(int piece);

  Board &board;
  int64_t budget;
  int64_t &evaluations;
  MoveEstimate cost;
  EditBatch batch;
};

/// Applies the best move or swap of a piece, if one lowers the cost.
bool ExactDescent::improve(int piece) {
  if (!isMovable(piece))
    return false;
  batch.clear();
  int device = board.piece(piece).device;
  for (int target = 0; target < board.context().deviceCount; ++target)
    if (target != device)
      consider(board.move(piece, target));
  for (int other = 0; other < board.pieceSlots(); ++other)
    if (isMovable(other) && board.piece(other).device != device)
      consider(board.swap(piece, other));
  batch.run();
  evaluations += static_cast<int64_t>(batch.size());
  double least = cost.costMs() * (1 - kRelativeGain);
  size_t best = batch.size();
  for (size_t i = 0; i < batch.size(); ++i) {
    double exact = cost.costAfter(batch.change(i));
    if (exact >= least)
      continue;
    least = exact;
    best = i;
  }
  if (best == batch.size())
    return false;
  board.apply(batch.edit(best), batch.change(best));
  cost.measure(false);
  return true;
}

} // namespace

double neuroshard::descendExactly(Board &board, int64_t budget,
                                  int64_t &evaluations) {
  return ExactDescent(board, budget, evaluations).run();
}
