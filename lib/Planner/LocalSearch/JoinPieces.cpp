//===- JoinPieces.cpp - Joining pieces whose cut gains nothing ------------===//
///
/// \file
/// Annealing also cuts tables whose pieces lie on devices that do not decide
/// the cost. A plan of fewer shards is easier to read, to save and to change,
/// so each cut must lower the cost in the end: by more where only a fitted
/// model says that a device is faster with a table in pieces.
//===----------------------------------------------------------------------===//

#include "LocalSearch.h"

#include "EditBatch.h"

#include <algorithm>
#include <optional>
#include <tuple>

using namespace neuroshard;

namespace {

/// Power of the estimate that rules out joins without asking the model, and the
/// share by which the estimate may be wrong.
constexpr int kJoinPower = 4096;
constexpr double kEstimateShare = 1e-3;

enum class Siblings { All, OnOneDevice };

class PieceJoiner {
public:
  PieceJoiner(Board &board, Siblings joined, double limitMs,
              int64_t &evaluations)
      : board(board), joined(joined), limitMs(limitMs),
        evaluations(evaluations), cost(board, kJoinPower), batch(board) {}

  double run();

private:
  bool joinSmallest(int region);
  bool joinInto(int piece);
  void consider(int piece, int sibling);
  std::vector<int> bySize(const Region &region) const;

  Board &board;
  const Siblings joined;
  const double limitMs;
  int64_t &evaluations;
  MoveEstimate cost;
  EditBatch batch;
};

std::vector<int> PieceJoiner::bySize(const Region &region) const {
  std::vector<int> pieces;
  for (const std::vector<int> &band : region.bands)
    pieces.insert(pieces.end(), band.begin(), band.end());
  std::sort(pieces.begin(), pieces.end(), [&](int a, int b) {
    auto size = [&](int index) {
      const BoardPiece &piece = board.piece(index);
      return std::tuple(piece.rows * piece.width, index);
    };
    return size(a) < size(b);
  });
  return pieces;
}

/// Considers joining two pieces on the device of either.
void PieceJoiner::consider(int piece, int sibling) {
  bool together = board.piece(piece).device == board.piece(sibling).device;
  if (joined == Siblings::OnOneDevice && !together)
    return;
  for (const Edit &edit :
       {board.join(sibling, piece), board.join(piece, sibling)})
    if (edit.kind != Edit::None && board.fits(edit))
      batch.add(edit);
}

/// Joins a piece with the sibling for which the cost is lowest.
bool PieceJoiner::joinInto(int index) {
  batch.clear();
  for (const std::vector<int> &band : board.regionOf(board.piece(index)).bands)
    for (int sibling : band)
      consider(index, sibling);
  if (batch.size() == 0)
    return false;
  batch.run();
  evaluations += static_cast<int64_t>(batch.size());
  std::optional<size_t> best;
  double bestMs = limitMs;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!cost.isBelow(batch.change(i), limitMs * (1 + kEstimateShare)))
      continue;
    double exact = cost.costAfter(batch.change(i));
    if (exact > bestMs)
      continue;
    bestMs = exact;
    best = i;
  }
  if (!best)
    return false;
  board.apply(batch.edit(*best), batch.change(*best));
  cost.measure(false);
  return true;
}

bool PieceJoiner::joinSmallest(int region) {
  for (int piece : bySize(board.region(region)))
    if (joinInto(piece))
      return true;
  return false;
}

/// A join may make room under the limit for others, also in earlier regions.
double PieceJoiner::run() {
  for (bool joined = true; joined;) {
    joined = false;
    for (int region = 0; region < board.regionCount(); ++region)
      while (board.region(region).pieces > 1 && !board.region(region).rigid &&
             !board.context().deadlinePassed() && joinSmallest(region))
        joined = true;
  }
  board.refresh();
  cost.measure(false);
  return cost.costMs();
}

} // namespace

double neuroshard::joinPieces(Board &board, double limitMs,
                              int64_t &evaluations) {
  return PieceJoiner(board, Siblings::All, limitMs, evaluations).run();
}

double neuroshard::joinPiecesOnDevices(Board &board, double limitMs,
                                       int64_t &evaluations) {
  return PieceJoiner(board, Siblings::OnOneDevice, limitMs, evaluations).run();
}
