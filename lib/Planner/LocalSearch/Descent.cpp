//===- Descent.cpp - Steepest descent for the slowest devices -------------===//

#include "LocalSearch.h"

#include "EditBatch.h"
#include "MovedBytes.h"
#include "Proposals.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;

namespace {

/// Devices on which a piece / a part of it is tried.
constexpr size_t kMaxTargets = 24;
constexpr size_t kMaxSplitTargets = 6;
/// Pieces of a device that are tried, costliest first.
constexpr size_t kMaxPieces = 48;
/// Edits whose exact cost is asked for: those with the best estimates.
constexpr size_t kMaxExact = 12;
constexpr int kDescentPower = 256;

class Descent {
public:
  Descent(Board &board, int64_t budget, int64_t &evaluations,
          MovedBytes *migration)
      : board(board), budget(budget), evaluations(evaluations),
        migration(migration), cost(board, kDescentPower), batch(board) {}

  double run();

private:
  void consider(const Edit &edit);
  void considerDevice(int device);
  void considerPiece(int piece, const std::vector<int> &targets);
  void considerSplits(int piece, const std::vector<int> &targets);
  void considerSiblings(int piece);
  std::vector<int> targetsFor(int device) const;
  std::vector<int> costliest(int device) const;
  bool takeBest();
  double moveMs() const { return migration ? migration->costMs() : 0; }
  double moveMsAfter(size_t edit) const {
    return migration ? migration->costAfter(batch.edit(edit)) : 0;
  }

  Board &board;
  const int64_t budget;
  int64_t &evaluations;
  MovedBytes *migration;
  int64_t used = 0;
  MoveEstimate cost;
  EditBatch batch;
};

void Descent::consider(const Edit &edit) {
  if (edit.kind != Edit::None && used < budget && board.fits(edit)) {
    batch.add(edit);
    ++used;
  }
}

std::vector<int> Descent::targetsFor(int device) const {
  std::vector<int> targets;
  for (int other = 0; other < board.context().deviceCount; ++other)
    if (other != device)
      targets.push_back(other);
  size_t count = std::min(kMaxTargets, targets.size());
  std::partial_sort(targets.begin(),
                    targets.begin() + static_cast<std::ptrdiff_t>(count),
                    targets.end(), [&](int a, int b) {
                      return std::pair(board.loadOf(a).compute.total(), a) <
                             std::pair(board.loadOf(b).compute.total(), b);
                    });
  targets.resize(count);
  return targets;
}

std::vector<int> Descent::costliest(int device) const {
  std::vector<int> pieces;
  for (int piece : board.piecesOn(device))
    if (board.piece(piece).movable)
      pieces.push_back(piece);
  std::sort(pieces.begin(), pieces.end(), [&](int a, int b) {
    return std::pair(-board.piece(a).facts->load.compute.total(), a) <
           std::pair(-board.piece(b).facts->load.compute.total(), b);
  });
  if (pieces.size() > kMaxPieces)
    pieces.resize(kMaxPieces);
  return pieces;
}

void Descent::considerSplits(int index, const std::vector<int> &targets) {
  const BoardPiece &piece = board.piece(index);
  size_t count = std::min(kMaxSplitTargets, targets.size());
  for (bool rows : {false, true}) {
    int64_t step = rows ? rowStep(board.regionOf(piece)) : kColumnAlignment;
    int64_t steps = ((rows ? piece.rows : piece.width) + step - 1) / step;
    // A few numbers of rows, every width.
    int64_t stride = rows ? std::max<int64_t>(1, steps / 4) : 1;
    for (int64_t stays = stride; stays < steps; stays += stride)
      for (size_t i = 0; i < count; ++i)
        consider(board.split(index, targets[i], rows, stays * step));
  }
}

void Descent::considerSiblings(int index) {
  const BoardPiece &piece = board.piece(index);
  const Region &region = board.regionOf(piece);
  if (region.pieces < 2 || region.rigid)
    return;
  for (const std::vector<int> &band : region.bands) {
    bool rows =
        band.size() == 1 && board.piece(band.front()).band != piece.band;
    for (int sibling : band) {
      consider(board.join(index, sibling));
      consider(board.join(sibling, index));
      int64_t step = rows ? rowStep(region) : kColumnAlignment;
      int64_t size = rows ? piece.rows : piece.width;
      for (int64_t by : {-8, -4, -2, -1, 1, 2, 4, 8})
        consider(board.rewidth(index, sibling, size + by * step));
    }
  }
}

void Descent::considerPiece(int index, const std::vector<int> &targets) {
  const ShardFacts &moved = *board.piece(index).facts;
  for (int target : targets) {
    consider(board.move(index, target));
    for (int other : costliest(target)) {
      const ShardFacts &back = *board.piece(other).facts;
      if (back.load.compute.total() < moved.load.compute.total() ||
          back.load.dims < moved.load.dims)
        consider(board.swap(index, other));
    }
  }
  considerSplits(index, targets);
  considerSiblings(index);
}

void Descent::considerDevice(int device) {
  std::vector<int> targets = targetsFor(device);
  for (int piece : costliest(device))
    considerPiece(piece, targets);
}

/// Applies the edit of lowest exact cost among those with the best estimates.
bool Descent::takeBest() {
  batch.run();
  evaluations += static_cast<int64_t>(batch.size());
  std::vector<double> energies(batch.size());
  std::vector<double> moves(batch.size());
  std::vector<size_t> order(batch.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i : order) {
    moves[i] = moveMsAfter(i);
    energies[i] = cost.energyAfter(batch.change(i)) + moves[i];
  }
  size_t count = std::min(kMaxExact, order.size());
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count),
      order.end(), [&](size_t a, size_t b) {
        return std::pair(energies[a], a) < std::pair(energies[b], b);
      });
  double now = cost.costMs() + moveMs();
  double before = cost.energyMs() + moveMs();
  double bestMs = now, bestEnergy = before;
  size_t best = batch.size();
  for (size_t i = 0; i < count; ++i) {
    size_t candidate = order[i];
    double exact = cost.costAfter(batch.change(candidate)) + moves[candidate];
    bool lower = exact < bestMs * (1 - kRelativeGain);
    // Where several devices are equally slow, relieving one of them lowers the
    // energy, but not yet the cost.
    bool smoother = exact <= bestMs && best == batch.size() &&
                    energies[candidate] < bestEnergy * (1 - kRelativeGain);
    if (!lower && !smoother)
      continue;
    bestMs = exact;
    bestEnergy = energies[candidate];
    best = candidate;
  }
  if (best == batch.size())
    return false;
  if (migration)
    migration->apply(batch.edit(best));
  board.apply(batch.edit(best), batch.change(best));
  cost.measure(true);
  // Stops when neither cost nor energy fell, as estimates can be wrong.
  return cost.costMs() + moveMs() < now * (1 - kRelativeGain) ||
         cost.energyMs() + moveMs() < before * (1 - kRelativeGain);
}

double Descent::run() {
  bool improved = true;
  while (improved && used < budget && !board.context().deadlinePassed()) {
    batch.clear();
    for (int device : cost.critical())
      considerDevice(device);
    improved = takeBest();
  }
  return cost.costMs();
}

} // namespace

double neuroshard::descend(Board &board, int64_t budget, int64_t &evaluations,
                           MovedBytes *migration) {
  return Descent(board, budget, evaluations, migration).run();
}
