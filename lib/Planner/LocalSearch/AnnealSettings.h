//===- AnnealSettings.h - How hot and how long annealing runs ---*- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEALSETTINGS_H
#define NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEALSETTINGS_H

#include "Units/SearchContext.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace neuroshard {

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

/// Random edits of all local searches together that the default search affords
/// for so many tables, without those that the options may ask for.
int64_t annealSteps(const SearchContext &context, size_t tables);

/// Settings for a board of so many pieces. The local searches of round 0 differ
/// in their heat by `chain`. The seed and `stageDone` are left out.
AnnealSettings annealSettings(int64_t steps, int pieces, uint64_t round,
                              size_t chain);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_LOCALSEARCH_ANNEALSETTINGS_H
