//===- Anneal.cpp - Simulated annealing of a placement --------------------===//

#include "LocalSearch.h"

#include "EditBatch.h"
#include "Proposals.h"

#include <algorithm>
#include <cmath>
#include <optional>

using namespace neuroshard;

namespace {

/// Edits judged in one model call; those after an accepted one are dropped.
constexpr size_t kMaxBatch = 8;
/// Power of the p-norm in place of the maximum, at the start and at the end.
constexpr int kFirstPower = 16;
constexpr int kLastPower = 256;
/// After this many accepted edits the model measures the board again.
constexpr int kMaxUnmeasured = 16;
/// Edits between two looks at the deadline.
constexpr int64_t kStepsPerCheck = 1024;
/// A state that is cheaper by a smaller share is not copied as the best.
constexpr double kWorthKeeping = 1e-7;

class Annealer {
public:
  Annealer(Board &board, const AnnealSettings &settings, int64_t &evaluations)
      : board(board), settings(settings), evaluations(evaluations),
        cost(board, kFirstPower), proposals(board, settings.seed), batch(board),
        best(board), bestMs(cost.costMs()) {}

  double run();

private:
  void stage(double heat, int64_t steps);
  void tryOne(double heat);
  void tryBatch(double heat);
  double limitFor(const Edit &edit, double heat);
  void accept(const Edit &edit, const LoadChange &change);
  void measure(bool probe);

  Board &board;
  const AnnealSettings &settings;
  int64_t &evaluations;
  MoveEstimate cost;
  Proposals proposals;
  EditBatch batch;
  /// Change of the edit that is being judged.
  LoadChange change;
  Board best;
  double bestMs;
  /// The board is better than `best`, which becomes a copy of it as soon as the
  /// board gets worse.
  bool bestIsBoard = false;
  double lowestEnergy = 0;
  int unmeasured = 0;
  int64_t drawn = 0;
};

void Annealer::measure(bool probe) {
  cost.measure(probe);
  unmeasured = 0;
  if (cost.costMs() >= bestMs * (1 - kWorthKeeping))
    return;
  bestMs = cost.costMs();
  bestIsBoard = true;
}

void Annealer::accept(const Edit &edit, const LoadChange &change) {
  if (bestIsBoard) {
    best = board;
    bestIsBoard = false;
  }
  board.apply(edit, change);
  cost.apply(change);
  ++unmeasured;
  if (cost.energyMs() < lowestEnergy) {
    lowestEnergy = cost.energyMs();
    measure(false);
  } else if (unmeasured >= kMaxUnmeasured) {
    measure(false);
  }
}

/// The energy up to which an edit is accepted.
double Annealer::limitFor(const Edit &edit, double heat) {
  bool cuts = edit.kind == Edit::Split || edit.kind == Edit::Exchange;
  int pieces = cuts ? 1 : edit.kind == Edit::Join ? -1 : 0;
  double luck = -std::log(std::max(1e-12, proposals.generator().real()));
  return cost.energyMs() + heat * luck -
         pieces * settings.pieceWorth * cost.costMs();
}

/// Draws an edit and applies it if it is accepted.
void Annealer::tryOne(double heat) {
  ++drawn;
  Edit edit = proposals.draw(cost.critical());
  if (edit.kind == Edit::None || !board.fits(edit))
    return;
  ++evaluations;
  EditBatch::judge(board, edit, change);
  if (cost.isBelow(change, limitFor(edit, heat)))
    accept(edit, change);
}

/// Judges a batch of edits; applies the first that is accepted.
void Annealer::tryBatch(double heat) {
  batch.clear();
  // Bounded, since on a full board hardly any edit fits.
  for (size_t i = 0; i < 4 * kMaxBatch && batch.size() < kMaxBatch; ++i) {
    ++drawn;
    Edit edit = proposals.draw(cost.critical());
    if (edit.kind != Edit::None && board.fits(edit))
      batch.add(edit);
  }
  batch.run();
  for (size_t i = 0; i < batch.size(); ++i) {
    ++evaluations;
    if (cost.isBelow(batch.change(i), limitFor(batch.edit(i), heat)))
      return accept(batch.edit(i), batch.change(i));
  }
}

void Annealer::stage(double heat, int64_t steps) {
  const SumEmbedding *embedding = board.context().model.sumEmbedding();
  bool cheap = embedding && embedding->size() <= kSmallEmbedding;
  int64_t check = drawn + kStepsPerCheck;
  for (int64_t end = drawn + steps; drawn < end;) {
    cheap ? tryOne(heat) : tryBatch(heat);
    if (drawn < check)
      continue;
    if (board.context().deadlinePassed())
      return;
    check += kStepsPerCheck;
  }
}

double Annealer::run() {
  if (board.pieceCount() == 0)
    return bestMs;
  for (int i = 0; i < kAnnealStages && !board.context().deadlinePassed(); ++i) {
    double progress = static_cast<double>(i) / (kAnnealStages - 1);
    double share = settings.firstHeat *
                   std::pow(settings.lastHeat / settings.firstHeat, progress);
    cost.setPower(static_cast<int>(
        std::exp2(std::round(std::log2(kFirstPower) +
                             progress * std::log2(kLastPower / kFirstPower)))));
    board.refresh();
    measure(true);
    lowestEnergy = cost.energyMs();
    stage(share * cost.costMs(), settings.steps / kAnnealStages);
    if (settings.stageDone)
      settings.stageDone(bestMs);
  }
  measure(false);
  if (!bestIsBoard)
    board = best;
  return bestMs;
}

} // namespace

double neuroshard::anneal(Board &board, const AnnealSettings &settings,
                          int64_t &evaluations) {
  return Annealer(board, settings, evaluations).run();
}
