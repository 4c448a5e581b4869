//===- LfuReplay.h - Hits of an LFU cache, from some of its sets *- C++ -*-===//

#ifndef NEUROSHARD_LIB_PLANNER_COST_LFUREPLAY_H
#define NEUROSHARD_LIB_PLANNER_COST_LFUREPLAY_H

#include <span>
#include <vector>

namespace neuroshard {

/// Rows of which each is used by a batch with one probability.
struct UsedRows {
  double rows;
  double used; ///< below 1.
};

/// Of each group, the share of its rows' uses that finds the row in a cache of
/// so many places with CachePolicy::Lfu.
///
/// Which rows stay depends on what else came while each was there, so that no
/// formula is known; but sets of a cache do not depend on each other, and some
/// tell of all (set sampling: Puzak, Analysis of cache replacement algorithms,
/// 1985). So a few sets get their share of each group, uses of its rows are
/// drawn, and the policy is followed. The first two thirds of the uses do not
/// count; in ten times as many, hits would rise by a point at most. Draws are
/// the same at each call.
std::vector<double> lfuHitRates(std::span<const UsedRows> groups,
                                double places);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_PLANNER_COST_LFUREPLAY_H
