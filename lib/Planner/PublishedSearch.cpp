//===- PublishedSearch.cpp - The paper's beam over column splits ----------===//
///
/// \file
/// MLSys 2023, arXiv 2305.01868: a beam over halvings of columns; each state is
/// judged by the best of a greedy placement over a grid of dimension caps.
//===----------------------------------------------------------------------===//

#include "Algorithms.h"
#include "Placement.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

using namespace neuroshard;

namespace {

constexpr double kNoPlan = std::numeric_limits<double>::infinity();

struct BeamState {
  std::vector<UnitPtr> units;
  double costMs = kNoPlan;
};

class PublishedSearch {
public:
  explicit PublishedSearch(const SearchContext &context)
      : context(context), settings(context.options.published) {}

  Outcome run(const std::vector<UnitPtr> &units);

private:
  double tableWise(const std::vector<UnitPtr> &units);
  std::vector<size_t> candidates(const std::vector<UnitPtr> &units) const;
  std::vector<BeamState> expand(const std::vector<BeamState> &beam);

  const SearchContext &context;
  const PublishedSettings &settings;
  Outcome outcome;
  double bestMs = kNoPlan;
};

/// Best plan cost over the grid of caps; remembers the best state ever seen.
double PublishedSearch::tableWise(const std::vector<UnitPtr> &units) {
  SearchState empty(context, units);
  std::vector<size_t> order =
      movableByKey(empty, [](const Unit &unit) { return unit.aloneMs(); });
  double dims = 0;
  for (const UnitPtr &unit : units)
    dims += unit->load.dims;
  double best = kNoPlan;
  for (int i = 0; i < settings.gridPoints; ++i) {
    double share = settings.gridPoints > 1
                       ? static_cast<double>(i) / (settings.gridPoints - 1)
                       : 0;
    double cap =
        settings.gridBegin + (settings.gridEnd - settings.gridBegin) * share;
    SearchState state = empty;
    ++outcome.evaluations;
    if (!placeByCompute(state, order, cap * (dims / context.deviceCount)))
      continue;
    double cost = state.costMs();
    best = std::min(best, cost);
    if (cost >= bestMs || !state.withinMemory())
      continue;
    bestMs = cost;
    outcome.state.emplace(std::move(state));
  }
  return best;
}

/// The largest by size united with the costliest alone, by index.
std::vector<size_t>
PublishedSearch::candidates(const std::vector<UnitPtr> &units) const {
  std::set<size_t> chosen;
  std::vector<size_t> order(units.size());
  size_t count =
      std::min(units.size(), static_cast<size_t>(settings.candidates));
  auto choose = [&](auto key) {
    std::iota(order.begin(), order.end(), size_t(0));
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return key(*units[a]) > key(*units[b]);
    });
    chosen.insert(order.begin(),
                  order.begin() + static_cast<std::ptrdiff_t>(count));
  };
  choose([](const Unit &unit) { return unit.weightBytes(); });
  choose([](const Unit &unit) { return unit.aloneMs(); });
  return {chosen.begin(), chosen.end()};
}

std::vector<BeamState>
PublishedSearch::expand(const std::vector<BeamState> &beam) {
  std::vector<BeamState> children;
  for (const BeamState &parent : beam)
    for (size_t index : candidates(parent.units)) {
      if (context.deadlinePassed())
        return children;
      auto halves = halveColumns(context, *parent.units[index]);
      if (!halves)
        continue;
      BeamState child;
      child.units = parent.units;
      child.units[index] = (*halves)[0];
      child.units.push_back((*halves)[1]);
      child.costMs = tableWise(child.units);
      children.push_back(std::move(child));
    }
  std::stable_sort(children.begin(), children.end(),
                   [](const BeamState &a, const BeamState &b) {
                     return a.costMs < b.costMs;
                   });
  if (children.size() > static_cast<size_t>(settings.beamWidth))
    children.resize(static_cast<size_t>(settings.beamWidth));
  return children;
}

Outcome PublishedSearch::run(const std::vector<UnitPtr> &units) {
  std::vector<BeamState> beam = {{units, tableWise(units)}};
  outcome.tried.push_back("no split: " + formatMs(beam.front().costMs));
  outcome.stopReason =
      std::to_string(settings.depth) + " rounds of splits done";
  for (int round = 1; round <= settings.depth; ++round) {
    beam = expand(beam);
    if (beam.empty()) {
      outcome.stopReason = "no table left that can be halved";
      break;
    }
    outcome.tried.push_back(std::to_string(round) +
                            " splits: " + formatMs(beam.front().costMs));
    if (context.deadlinePassed()) {
      outcome.stopReason = "deadline";
      break;
    }
  }
  if (outcome.state)
    outcome.explanation = describeSplits(*outcome.state);
  return std::move(outcome);
}

} // namespace

Outcome neuroshard::searchPublished(const SearchContext &context,
                                    const std::vector<UnitPtr> &units) {
  return PublishedSearch(context).run(units);
}
