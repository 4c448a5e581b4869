//===- Published.cpp - Published beam search over column splits -----------===//
///
/// \file
/// MLSys 2023, arXiv 2305.01868: a beam over halvings of columns; each state is
/// judged by the best of a greedy placement over a grid of dimension caps.
///
/// A third of the states equal others but for the order of their tables. They
/// keep their places in the beam, as published, but are evaluated once.
//===----------------------------------------------------------------------===//

#include "Baselines.h"
#include "Placement/Greedy.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <unordered_map>

using namespace neuroshard;

namespace {

struct BeamState {
  std::vector<UnitPtr> units;
  double costMs = kInfiniteMs;
};

class PublishedSearch {
public:
  explicit PublishedSearch(const SearchContext &context)
      : context(context), settings(context.options.published),
        placer(context, gridCaps(settings)) {}

  SearchOutcome run(const std::vector<UnitPtr> &units);

private:
  void evaluate(std::span<BeamState> states);
  void keepBest(const GreedyJob &job);
  std::vector<size_t> candidates(const std::vector<UnitPtr> &units) const;
  std::vector<BeamState> expand(const std::vector<BeamState> &beam);

  const SearchContext &context;
  const PublishedSettings &settings;
  const GreedyPlacer placer;
  /// Costs of the states evaluated, by units in the order of placing.
  std::unordered_map<uint64_t, double> costOfKey;
  SearchOutcome outcome;
  double bestMs = kInfiniteMs;
};

uint64_t keyOf(const GreedyJob &job) {
  uint64_t key = 1;
  for (size_t index : job.order)
    key = contentsKey(key, *job.units[index]);
  return key;
}

void PublishedSearch::keepBest(const GreedyJob &job) {
  if (job.costMs >= bestMs)
    return;
  SearchState state = stateOf(context, job);
  if (!state.withinMemory())
    return;
  bestMs = job.costMs;
  outcome.state.emplace(std::move(state));
}

/// The lowest plan cost of each state over the grid of caps; keeps the best
/// state so far.
void PublishedSearch::evaluate(std::span<BeamState> states) {
  std::vector<GreedyJob> jobs(states.size());
  std::vector<uint64_t> keys;
  std::vector<GreedyJob *> todo;
  for (size_t i = 0; i < states.size(); ++i) {
    jobs[i].order = orderByCost(context, states[i].units);
    jobs[i].units.swap(states[i].units);
    keys.push_back(keyOf(jobs[i]));
    if (costOfKey.emplace(keys.back(), kInfiniteMs).second)
      todo.push_back(&jobs[i]);
  }
  placer.run(todo);
  for (size_t i = 0; i < states.size(); ++i) {
    double &cost = costOfKey[keys[i]];
    cost = std::min(cost, jobs[i].costMs);
    outcome.evaluations += jobs[i].evaluations;
    keepBest(jobs[i]);
    states[i].costMs = cost;
    states[i].units.swap(jobs[i].units);
  }
}

/// Indices of the largest units and of those that cost most alone, sorted.
std::vector<size_t>
PublishedSearch::candidates(const std::vector<UnitPtr> &units) const {
  std::set<size_t> chosen;
  std::vector<size_t> order(units.size());
  size_t count =
      std::min(units.size(), static_cast<size_t>(settings.candidates));
  auto choose = [&](auto key) {
    std::iota(order.begin(), order.end(), size_t{0});
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
      auto halves = halveColumns(context, *parent.units[index]);
      if (!halves)
        continue;
      BeamState &child = children.emplace_back();
      child.units = parent.units;
      child.units[index] = (*halves)[0];
      child.units.push_back((*halves)[1]);
    }
  evaluate(children);
  std::stable_sort(children.begin(), children.end(),
                   [](const BeamState &a, const BeamState &b) {
                     return a.costMs < b.costMs;
                   });
  if (children.size() > static_cast<size_t>(settings.beamWidth))
    children.resize(static_cast<size_t>(settings.beamWidth));
  return children;
}

SearchOutcome PublishedSearch::run(const std::vector<UnitPtr> &units) {
  std::vector<BeamState> beam(1);
  beam.front().units = units;
  evaluate(beam);
  outcome.tried.push_back("no split: " + formatMs(beam.front().costMs));
  outcome.stopReason =
      std::to_string(settings.depth) + " rounds of splits done";
  for (int round = 1; round <= settings.depth; ++round) {
    if (context.deadlinePassed()) {
      outcome.stopReason = "deadline";
      break;
    }
    beam = expand(beam);
    if (beam.empty()) {
      outcome.stopReason = "no table left that can be halved";
      break;
    }
    outcome.tried.push_back(std::to_string(round) +
                            " splits: " + formatMs(beam.front().costMs));
  }
  return std::move(outcome);
}

} // namespace

SearchOutcome neuroshard::searchPublished(const SearchContext &context,
                                          const std::vector<UnitPtr> &units) {
  return PublishedSearch(context).run(units);
}
