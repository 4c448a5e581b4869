//===- GreedyByKey.cpp - Greedy placement of whole tables by a key --------===//
///
/// \file
/// The keys of the published comparisons: dim; rows * dim; dim * pooling;
/// dim * pooling * log10(rows); random.
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "Placement/Placement.h"

#include <cmath>
#include <random>

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

/// Places each unit on a random device among those with room.
static bool placeRandomly(SearchState &state, uint64_t seed) {
  const SearchContext &context = state.context();
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < state.units().size(); ++i) {
    if (state.deviceOf(i) != SearchState::kUnplaced)
      continue;
    std::vector<int> roomy;
    for (int device = 0; device < context.deviceCount; ++device)
      if (state.fits(device, *state.units()[i]))
        roomy.push_back(device);
    if (roomy.empty())
      return false;
    // No std distribution, because these differ between standard libraries.
    state.place(i, roomy[random() % roomy.size()]);
  }
  return true;
}

SearchOutcome neuroshard::placeGreedilyByKey(const SearchContext &context,
                                             const std::vector<UnitPtr> &units,
                                             Algorithm algorithm) {
  SearchOutcome outcome;
  SearchState state(context, units);
  bool placed = false;
  if (algorithm == Algorithm::Random) {
    placed = placeRandomly(state, context.options.seed);
  } else {
    auto key = [&](const Unit &unit) { return keyOf(algorithm, unit); };
    placed = placeByKey(state, movableByKey(state, key), key);
  }
  outcome.evaluations = 1;
  outcome.stopReason = "one pass over the tables";
  if (placed)
    outcome.state = std::move(state);
  return outcome;
}
