//===- Anneal.h - Annealing, descent and joining of pieces ------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEAL_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEAL_H

#include "MoveEstimate.h"

#include <cstdint>
#include <functional>

namespace neuroshard {

class MigrationCost;

struct AnnealSettings {
  uint64_t seed = 0;
  /// Steps to draw.
  int64_t steps = 0;
  /// What a step may cost at first / at last, as a share of the cost.
  double firstHeat = 0.01;
  double lastHeat = 2e-5;
  /// By what share of the cost one more piece has to lower it.
  double pieceWorth = 0;
  /// Called after each of kAnnealStages with the lowest cost so far; may be
  /// empty.
  std::function<void(double)> stageDone;
};

/// Stages of cooling; between them all sums are worked out anew.
inline constexpr int kAnnealStages = 60;

/// Simulated annealing. Leaves the board at the cheapest state it measured and
/// returns its cost, never more than before. Stops early at the deadline.
/// `evaluations` counts the states judged.
double anneal(Board &board, const AnnealSettings &settings,
              int64_t &evaluations);

/// The best step for the devices that decide the cost, again and again until
/// none lowers it, `budget` states were judged, or the deadline has passed.
/// Returns the cost. With a `migration` a step must lower the cost together
/// with what moving away from the previous plan costs.
double descend(Board &board, int64_t budget, int64_t &evaluations,
               MigrationCost *migration = nullptr);

/// Joins pieces of a table for as long as the exact cost stays at or below
/// `limitMs`: of each table the smallest piece first, with the sibling that
/// leaves the lowest cost. Returns the cost.
double simplify(Board &board, double limitMs, int64_t &evaluations);

/// The same for pieces of a table that are on one device.
double joinOnDevices(Board &board, double limitMs, int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEAL_H
