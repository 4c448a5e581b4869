//===- Simplify.cpp - Joining pieces whose cut gains nothing --------------===//
///
/// \file
/// Random steps cut tables whose pieces then lie on devices that decide
/// nothing. A plan of fewer shards is easier to read, to save and to change, so
/// cuts have to be worth something in the end; more where a fitted model says
/// that a device is faster with a table in pieces.
//===----------------------------------------------------------------------===//

#include "Anneal.h"

#include "EditBatch.h"

#include <algorithm>
#include <optional>
#include <tuple>

using namespace neuroshard;

namespace {

/// So close to a maximum that the estimate sorts out what the model need not
/// be asked about; and what it may be wrong by.
constexpr int kSimplifyPower = 4096;
constexpr double kEstimateShare = 1e-3;

enum class Siblings { All, OnOneDevice };

class Simplifier {
public:
  Simplifier(Board &board, Siblings joined, double limitMs,
             int64_t &evaluations)
      : board(board), joined(joined), limitMs(limitMs),
        evaluations(evaluations), cost(board, kSimplifyPower), batch(board) {}

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

std::vector<int> Simplifier::bySize(const Region &region) const {
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

/// Either device may take both.
void Simplifier::consider(int piece, int sibling) {
  bool together = board.piece(piece).device == board.piece(sibling).device;
  if (joined == Siblings::OnOneDevice && !together)
    return;
  for (const Edit &edit :
       {board.join(sibling, piece), board.join(piece, sibling)})
    if (edit.kind != Edit::None && board.fits(edit))
      batch.add(edit);
}

/// Joins a piece with the sibling that leaves the lowest cost.
bool Simplifier::joinInto(int index) {
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

bool Simplifier::joinSmallest(int region) {
  for (int piece : bySize(board.region(region)))
    if (joinInto(piece))
      return true;
  return false;
}

double Simplifier::run() {
  for (int region = 0; region < board.regionCount(); ++region)
    while (board.region(region).pieces > 1 && !board.region(region).rigid &&
           !board.context().deadlinePassed() && joinSmallest(region)) {
    }
  board.refresh();
  cost.measure(false);
  return cost.costMs();
}

} // namespace

double neuroshard::simplify(Board &board, double limitMs,
                            int64_t &evaluations) {
  return Simplifier(board, Siblings::All, limitMs, evaluations).run();
}

double neuroshard::joinOnDevices(Board &board, double limitMs,
                                 int64_t &evaluations) {
  return Simplifier(board, Siblings::OnOneDevice, limitMs, evaluations).run();
}
