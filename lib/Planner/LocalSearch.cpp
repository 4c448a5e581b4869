//===- LocalSearch.cpp - Improving a plan where it hurts ------------------===//

#include "Algorithms.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

using namespace neuroshard;

namespace {

/// Devices a unit is tried on, from the least loaded up.
constexpr size_t kMaxTargets = 16;
/// Of those, how many a split-off half is tried on.
constexpr size_t kMaxSplitTargets = 8;
/// Units of a device that are tried, costliest first.
constexpr size_t kMaxUnits = 48;
/// Smaller differences are rounding.
constexpr double kRelativeGain = 1e-9;

/// What an accepted step must lower. The smooth cost leads over plateaus where
/// several devices are equally slow; the cost itself has the last word.
enum class Goal { Smooth, Cost };

bool better(const Trial &a, const Trial &b, Goal goal) {
  bool smoother = a.smoothMs < b.smoothMs * (1 - kRelativeGain);
  if (goal == Goal::Smooth)
    return smoother;
  return a.costMs < b.costMs * (1 - kRelativeGain) ||
         (a.costMs <= b.costMs && smoother);
}

std::string joinWidths(const std::vector<UnitPtr> &parts, bool columns) {
  std::string text;
  for (const UnitPtr &part : parts) {
    const Shard &shard = part->shards.front();
    text += (text.empty() ? "" : " + ") +
            std::to_string(columns ? shard.width() : shard.rows());
  }
  return text + (columns ? " columns" : " rows");
}

/// One step to a neighbouring plan.
struct Step {
  enum Kind { None, Move, Swap, Split } kind = None;
  size_t unit = 0;
  size_t other = 0;
  int target = -1;
  std::vector<UnitPtr> parts;
  bool columns = true;
};

class Improver {
public:
  Improver(SearchState &state, int64_t budget, Outcome &outcome)
      : state(state), context(state.context()), budget(budget),
        outcome(outcome) {}

  void run();

private:
  std::vector<int> criticalDevices() const;
  std::vector<int> targets(int critical) const;
  std::vector<size_t> unitsByCost(int device) const;
  bool spent() const { return used >= budget || context.deadlinePassed(); }
  void consider(Step step, const std::vector<DeviceChange> &changes);
  void considerUnit(int device, size_t unit, const std::vector<int> &places);
  void considerSplit(int device, size_t unit, const std::vector<int> &places);
  bool improveOnce();
  bool apply();
  bool applySplit();
  void descendSmoothly();
  void joinShards();
  bool joinOn(int device);

  SearchState &state;
  const SearchContext &context;
  int64_t budget;
  Outcome &outcome;
  int64_t used = 0;
  Goal goal = Goal::Smooth;
  Step best;
  Trial bestTrial;
  /// Splits whose memory for joining columns did not fit.
  std::set<const Unit *> unsplittable;
  std::map<std::string, int> counts;
};

/// The devices that set one of the maxima the objective adds up.
std::vector<int> Improver::criticalDevices() const {
  CostBreakdown breakdown = state.breakdown();
  std::vector<int> devices;
  auto addLargest = [&](auto value) {
    int largest = 0;
    for (int device = 1; device < context.deviceCount; ++device)
      if (value(device) > value(largest))
        largest = device;
    if (std::find(devices.begin(), devices.end(), largest) == devices.end())
      devices.push_back(largest);
  };
  addLargest([&](int d) {
    const DeviceCost &cost = breakdown.devices[static_cast<size_t>(d)];
    double ms = cost.compute.total();
    if (context.options.objective.kind == ObjectiveKind::Published)
      ms += cost.forwardCommunicationMs + cost.backwardCommunicationMs;
    return ms;
  });
  addLargest([&](int d) { return state.loadOf(d).compute.forwardMs; });
  addLargest([&](int d) { return state.loadOf(d).compute.backwardMs; });
  addLargest([&](int d) { return state.loadOf(d).dims; });
  addLargest([&](int d) { return state.loadOf(d).forwardBytes; });
  addLargest([&](int d) { return state.loadOf(d).inputBytes; });
  return devices;
}

std::vector<int> Improver::targets(int critical) const {
  std::vector<int> devices;
  for (int device = 0; device < context.deviceCount; ++device)
    if (device != critical)
      devices.push_back(device);
  auto lighter = [&](int a, int b) {
    double left = state.loadOf(a).compute.total();
    double right = state.loadOf(b).compute.total();
    return left != right ? left < right : a < b;
  };
  size_t count = std::min(kMaxTargets, devices.size());
  std::partial_sort(devices.begin(),
                    devices.begin() + static_cast<std::ptrdiff_t>(count),
                    devices.end(), lighter);
  devices.resize(count);
  return devices;
}

std::vector<size_t> Improver::unitsByCost(int device) const {
  std::vector<size_t> units;
  for (size_t unit : state.unitsOn(device))
    if (state.movable(unit))
      units.push_back(unit);
  std::sort(units.begin(), units.end(), [&](size_t a, size_t b) {
    double left = state.units()[a]->aloneMs();
    double right = state.units()[b]->aloneMs();
    return left != right ? left > right : a < b;
  });
  if (units.size() > kMaxUnits)
    units.resize(kMaxUnits);
  return units;
}

void Improver::consider(Step step, const std::vector<DeviceChange> &changes) {
  if (spent())
    return;
  for (const DeviceChange &change : changes)
    if (!state.fits(change))
      return;
  ++used;
  Trial trial = state.trialAfter(changes);
  if (!better(trial, bestTrial, goal))
    return;
  bestTrial = trial;
  best = std::move(step);
}

void Improver::considerUnit(int device, size_t unit,
                            const std::vector<int> &places) {
  const Unit *moved = state.units()[unit].get();
  for (int target : places) {
    consider({.kind = Step::Move, .unit = unit, .target = target, .parts = {}},
             {{device, {}, {moved}}, {target, {moved}, {}}});
    for (size_t other : unitsByCost(target)) {
      const Unit *back = state.units()[other].get();
      if (back->aloneMs() >= moved->aloneMs() &&
          back->load.dims >= moved->load.dims)
        continue;
      consider({.kind = Step::Swap,
                .unit = unit,
                .other = other,
                .target = target,
                .parts = {}},
               {{device, {back}, {moved}}, {target, {moved}, {back}}});
    }
  }
}

void Improver::considerSplit(int device, size_t unit,
                             const std::vector<int> &places) {
  const Unit *whole = state.units()[unit].get();
  if (unsplittable.contains(whole))
    return;
  for (bool columns : {true, false}) {
    auto parts = columns ? splitColumns(context, *whole, 2)
                         : splitRows(context, *whole, 2);
    if (!parts)
      continue;
    const Unit *stays = (*parts)[0].get();
    const Unit *goes = (*parts)[1].get();
    for (size_t i = 0; i < places.size() && i < kMaxSplitTargets; ++i)
      consider({.kind = Step::Split,
                .unit = unit,
                .target = places[i],
                .parts = *parts,
                .columns = columns},
               {{device, {stays}, {whole}}, {places[i], {goes}, {}}});
  }
}

bool Improver::applySplit() {
  UnitPtr whole = state.units()[best.unit];
  int device = state.deviceOf(best.unit);
  double before = state.loadOf(device).compute.total();
  double costBefore = state.costMs();
  SearchState backup = state;
  std::vector<size_t> indices = state.replace(best.unit, best.parts);
  state.place(indices[0], device);
  state.place(indices[1], best.target);
  if (!state.withinMemory()) {
    // The copy that joins the columns takes memory on every device.
    state = std::move(backup);
    unsplittable.insert(whole.get());
    return false;
  }
  outcome.explanation.push_back(
      "table '" + whole->shards.front().table + "' split " +
      joinWidths(best.parts, best.columns) + ": device " +
      std::to_string(device) + " was a bottleneck at " + formatMs(before) +
      " of compute, now " + formatMs(state.loadOf(device).compute.total()) +
      "; cost " + formatMs(costBefore) + ", now " + formatMs(state.costMs()));
  return true;
}

bool Improver::apply() {
  switch (best.kind) {
  case Step::None:
    return false;
  case Step::Move:
    state.remove(best.unit);
    state.place(best.unit, best.target);
    ++counts["moves"];
    return true;
  case Step::Swap: {
    int device = state.deviceOf(best.unit);
    state.remove(best.unit);
    state.remove(best.other);
    state.place(best.unit, best.target);
    state.place(best.other, device);
    ++counts["swaps"];
    return true;
  }
  case Step::Split:
    if (applySplit())
      ++counts["splits"];
    // Without the split there may still be another step.
    return true;
  }
  return false;
}

/// The best step away from the device that matters most and has one.
bool Improver::improveOnce() {
  best = {};
  bestTrial = state.trial();
  for (int device : criticalDevices()) {
    std::vector<int> places = targets(device);
    for (size_t unit : unitsByCost(device)) {
      considerUnit(device, unit, places);
      considerSplit(device, unit, places);
    }
    if (best.kind != Step::None)
      return apply();
    if (spent())
      return false;
  }
  return false;
}

/// Neighbouring shards of a table on one device as one; false when there is
/// nothing left to join.
bool Improver::joinOn(int device) {
  std::vector<size_t> units = state.unitsOn(device);
  for (size_t i = 0; i < units.size(); ++i)
    for (size_t j = i + 1; j < units.size(); ++j) {
      const Unit *a = state.units()[units[i]].get();
      const Unit *b = state.units()[units[j]].get();
      if (a->tables != b->tables)
        continue;
      UnitPtr joined = mergeUnits(context, *a, *b);
      if (!joined)
        continue;
      DeviceChange change{device, {joined.get()}, {a, b}};
      Trial now = state.trial();
      Trial then = state.trialAfter({change});
      if (!state.fits(change) || better(now, then, Goal::Cost))
        continue;
      size_t kept = std::min(units[i], units[j]);
      state.replace(kept, {joined});
      state.place(kept, device);
      state.erase(std::max(units[i], units[j]));
      ++counts["joins"];
      return true;
    }
  return false;
}

void Improver::joinShards() {
  for (int device = 0; device < context.deviceCount; ++device)
    while (joinOn(device)) {
    }
}

/// Follows the smooth cost as far as it leads; ends at the state of lowest cost
/// on the way.
void Improver::descendSmoothly() {
  goal = Goal::Smooth;
  SearchState lowest = state;
  double lowestMs = state.costMs();
  std::vector<std::string> explanation = outcome.explanation;
  while (improveOnce()) {
    double cost = state.costMs();
    if (cost >= lowestMs)
      continue;
    lowestMs = cost;
    lowest = state;
    explanation = outcome.explanation;
  }
  state = std::move(lowest);
  outcome.explanation = std::move(explanation);
}

void Improver::run() {
  double before = state.costMs();
  joinShards();
  descendSmoothly();
  goal = Goal::Cost;
  while (improveOnce()) {
  }
  joinShards();
  outcome.evaluations += used;
  std::string text = "local search: " + formatMs(before) + ", now " +
                     formatMs(state.costMs()) + " (" + std::to_string(used) +
                     " candidates";
  for (const auto &[name, count] : counts)
    text += ", " + std::to_string(count) + " " + name;
  outcome.tried.push_back(text + ")");
  outcome.stopReason =
      context.deadlinePassed() ? "deadline"
      : used >= budget
          ? "evaluation budget of " + std::to_string(budget) + " used up"
          : "no move, swap or split improves the plan";
}

} // namespace

void neuroshard::improve(SearchState &state, int64_t budget, Outcome &outcome) {
  Improver(state, budget, outcome).run();
}

std::string neuroshard::formatMs(double ms) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f ms", ms);
  return text;
}

/// "4 shards by columns: 32 + 32 + 32 + 32 columns".
static std::string describeCut(const Table &table,
                               const std::vector<UnitPtr> &units) {
  constexpr size_t kMaxListed = 8;
  const Shard &first = units.front()->shards.front();
  bool columns = first.width() != table.dim;
  bool rows = first.rows() != table.rows;
  std::string text = std::to_string(units.size()) + " shards by " +
                     (columns && rows ? "rows and columns"
                      : columns       ? "columns"
                                      : "rows");
  if (units.size() <= kMaxListed && columns != rows)
    text += ": " + joinWidths(units, columns);
  return text;
}

std::vector<std::string> neuroshard::describeSplits(const SearchState &state) {
  constexpr size_t kMaxNames = 4;
  std::map<int, std::vector<UnitPtr>> ofTable;
  for (const UnitPtr &unit : state.units())
    for (int table : unit->tables)
      ofTable[table].push_back(unit);
  // Tables that are cut alike share a line.
  std::map<std::string, std::vector<int>> tablesOfCut;
  for (const auto &[table, units] : ofTable)
    if (units.size() > 1)
      tablesOfCut[describeCut(state.context().table(table), units)].push_back(
          table);
  std::vector<std::string> lines;
  for (const auto &[cut, tables] : tablesOfCut) {
    std::string line = std::to_string(tables.size()) +
                       (tables.size() == 1 ? " table (" : " tables (");
    for (size_t i = 0; i < tables.size() && i < kMaxNames; ++i)
      line += (i ? ", " : "") + state.context().table(tables[i]).name;
    line += tables.size() > kMaxNames ? ", ...) cut into " : ") cut into ";
    lines.push_back(line + cut);
  }
  return lines;
}
