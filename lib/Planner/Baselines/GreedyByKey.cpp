//===- GreedyByKey.cpp - Greedy placement of whole tables by a key --------===//
///
/// \file
/// The keys of the published comparisons: dim; rows * dim; dim * pooling;
/// dim * pooling * log10(rows).
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "Placement/Placement.h"

#include <cmath>

using namespace neuroshard;

static double keyOf(Algorithm algorithm, const Unit &unit) {
  double key = 0;
  for (const ShardWork &work : unit.works) {
    double width = static_cast<double>(work.width);
    double rows = static_cast<double>(work.rows);
    switch (algorithm) {
    case Algorithm::Size:
      key += rows * width;
      break;
    case Algorithm::Lookup:
      key += width * work.pooling;
      break;
    case Algorithm::SizeLookup:
      key += width * work.pooling * std::log10(rows);
      break;
    default:
      key += width;
      break;
    }
  }
  return key;
}

SearchOutcome neuroshard::placeGreedilyByKey(const SearchContext &context,
                                             const std::vector<UnitPtr> &units,
                                             Algorithm algorithm) {
  SearchOutcome outcome;
  SearchState state(context, units);
  auto key = [&](const Unit &unit) { return keyOf(algorithm, unit); };
  bool placed = placeByKey(state, movableByKey(state, key), key);
  outcome.evaluations = 1;
  outcome.stopReason = "one pass over the tables";
  if (placed)
    outcome.state = std::move(state);
  return outcome;
}
