//===- LocalSearch.h - Annealing, descent and joining of pieces -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H

#include "MoveEstimate.h"

#include <cstdint>
#include <functional>

namespace neuroshard {

class MovedBytes;

struct AnnealSettings {
  uint64_t seed = 0;
  /// Edits to draw.
  int64_t steps = 0;
  /// By what share of the cost an edit may raise it, at the start / at the end.
  double firstHeat = 0.01;
  double lastHeat = 2e-5;
  /// By what share of the cost one more piece has to lower it.
  double pieceWorth = 0;
  /// Called after each of the kAnnealStages with the lowest cost so far; may be
  /// empty.
  std::function<void(double)> stageDone;
};

/// Stages of cooling; after each the board works out its totals anew.
inline constexpr int kAnnealStages = 60;

/// Simulated annealing. Leaves the board at the cheapest state it measured and
/// returns its cost, never more than before. Stops early at the deadline.
/// `evaluations` counts the states judged.
double anneal(Board &board, const AnnealSettings &settings,
              int64_t &evaluations);

/// Steepest descent: applies the best edit for the devices that decide the cost
/// until none lowers it, `budget` states were judged, or the deadline has
/// passed. Returns the cost. With a `migration`, edits must lower the sum of
/// the cost and the cost of migration.
double descend(Board &board, int64_t budget, int64_t &evaluations,
               MovedBytes *migration = nullptr);

/// Joins pieces of a table as long as the exact cost stays at or below
/// `limitMs`: of each table the smallest piece first, with the sibling for
/// which the cost is lowest. Returns the cost.
double joinPieces(Board &board, double limitMs, int64_t &evaluations);

/// The same for pieces of a table that are on one device.
double joinPiecesOnDevices(Board &board, double limitMs, int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H
