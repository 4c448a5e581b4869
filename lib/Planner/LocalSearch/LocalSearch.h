//===- LocalSearch.h - Annealing, descent and joining of pieces -*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H

#include "AnnealSettings.h"
#include "MoveEstimate.h"

#include <cstdint>

namespace neuroshard {

class MovedBytes;

/// Smaller gains of a descent may be rounding errors.
inline constexpr double kRelativeGain = 1e-9;

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

/// Applies moves and swaps of all pieces by turns while they lower the exact
/// cost, until none does, `budget` states were judged, or the deadline has
/// passed. Returns the cost.
double descendExactly(Board &board, int64_t budget, int64_t &evaluations);

/// Joins pieces of a table as long as the exact cost stays at or below
/// `limitMs`: of each table the smallest piece first, with the sibling for
/// which the cost is lowest. Returns the cost.
double joinPieces(Board &board, double limitMs, int64_t &evaluations);

/// The same for pieces of a table that are on one device.
double joinPiecesOnDevices(Board &board, double limitMs, int64_t &evaluations);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_LOCALSEARCH_H
