//===- RandomPlacement.cpp - Whole tables on random devices ---------------===//

#include "Baselines.h"
#include "Units/SearchState.h"

#include <random>

using namespace neuroshard;

/// Places each unit on a random device among those with room.
static bool drawDevices(SearchState &state, uint64_t seed) {
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

SearchOutcome neuroshard::placeRandomly(const SearchContext &context,
                                        const std::vector<UnitPtr> &units) {
  SearchOutcome outcome;
  SearchState state(context, units);
  if (drawDevices(state, context.options.seed))
    outcome.state = std::move(state);
  outcome.evaluations = 1;
  outcome.stopReason = "one pass over the tables";
  return outcome;
}
