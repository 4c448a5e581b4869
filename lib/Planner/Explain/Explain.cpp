//===- Explain.cpp - Sentences that explain a plan ------------------------===//
///
/// \file
/// Each cut is compared with its opposite: the whole table on the device where
/// it costs least, and everything else unchanged.
//===----------------------------------------------------------------------===//

#include "Explain.h"

#include "Units/SearchOutcome.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

using namespace neuroshard;

namespace {

/// Number of tables with a line of their own; the others share lines.
constexpr size_t kMaxExplained = 64;
/// Number of devices on which a whole table is tried: those with the least
/// compute.
constexpr size_t kMaxTried = 32;
/// Smaller differences of cost are not mentioned.
constexpr double kSame = 5e-4;
constexpr size_t kMaxListed = 8;
constexpr size_t kMaxNames = 4;

/// The shard of a table in a unit of one or several tables.
const Shard &shardOf(const Unit &unit, int table) {
  auto place = std::find(unit.tables.begin(), unit.tables.end(), table);
  return unit.shards[static_cast<size_t>(place - unit.tables.begin())];
}

std::string joinSizes(const std::vector<const Shard *> &shards, bool columns) {
  std::string text;
  for (const Shard *shard : shards)
    text += (text.empty() ? "" : " + ") +
            std::to_string(columns ? shard->width() : shard->rows());
  return text + (columns ? " columns" : " rows");
}

/// "4 shards by columns: 32 + 32 + 32 + 32 columns".
std::string describeCut(const Table &table,
                        const std::vector<const Shard *> &shards) {
  // A row shard may have all columns, and a column shard all rows.
  bool columns = std::ranges::any_of(
      shards, [&](const Shard *one) { return one->width() != table.dim; });
  bool rows = std::ranges::any_of(
      shards, [&](const Shard *one) { return one->rows() != table.rows; });
  std::string text = std::to_string(shards.size()) + " shards by " +
                     (columns && rows ? "rows and columns"
                      : columns       ? "columns"
                                      : "rows");
  if (shards.size() <= kMaxListed && columns != rows)
    text += ": " + joinSizes(shards, columns);
  return text;
}

class Explainer {
public:
  Explainer(const SearchState &state, const std::vector<UnitPtr> &wholes)
      : state(state), context(state.context()),
        nowMs(state.breakdown().costMs) {
    for (const UnitPtr &whole : wholes)
      for (int table : whole->tables)
        wholesOfTable[table].push_back(whole);
    for (size_t i = 0; i < state.units().size(); ++i)
      for (int table : state.units()[i]->tables)
        unitsOfTable[table].push_back(i);
  }

  std::vector<std::string> explain();

private:
  bool isReplicated(int table) const;
  std::vector<const Shard *> pieces(int table) const;
  std::string others(int table) const;
  std::string whyNotWhole(int table) const;
  UnitPtr wholeOf(int table) const;
  SearchState without(int table) const;
  std::optional<double> costWhole(int table, const Unit &whole) const;
  int64_t roomWithout(int table) const;
  std::string lineFor(int table) const;
  void summarize(const std::vector<int> &tables,
                 std::vector<std::string> &lines) const;

  const SearchState &state;
  const SearchContext &context;
  const double nowMs;
  std::map<int, std::vector<UnitPtr>> wholesOfTable;
  std::map<int, std::vector<size_t>> unitsOfTable;
};

bool Explainer::isReplicated(int table) const {
  const Unit &first = *state.units()[unitsOfTable.at(table).front()];
  return first.shards.front().replicated();
}

std::vector<const Shard *> Explainer::pieces(int table) const {
  std::vector<const Shard *> shards;
  for (size_t unit : unitsOfTable.at(table))
    shards.push_back(&shardOf(*state.units()[unit], table));
  return shards;
}

/// " with 'b'" of co-located tables.
std::string Explainer::others(int table) const {
  const Unit &unit = *state.units()[unitsOfTable.at(table).front()];
  std::string text;
  for (int other : unit.tables)
    if (other != table)
      text +=
          (text.empty() ? " with '" : ", '") + context.table(other).name + "'";
  return text;
}

/// The whole table as a unit; null when the rules forbid it.
UnitPtr Explainer::wholeOf(int table) const {
  auto found = wholesOfTable.find(table);
  if (found == wholesOfTable.end() || found->second.size() != 1)
    return nullptr;
  const UnitPtr &whole = found->second.front();
  return whole->forcedDevice == -1 && !whole->writtenByHand ? whole : nullptr;
}

/// The state with the units of a table replaced by the whole table, not placed.
SearchState Explainer::without(int table) const {
  SearchState result = state;
  std::vector<size_t> pieces = unitsOfTable.at(table);
  std::sort(pieces.begin(), pieces.end());
  for (size_t i = pieces.size(); i-- > 1;)
    result.erase(pieces[i]);
  result.replace(pieces.front(), {wholeOf(table)});
  return result;
}

std::optional<double> Explainer::costWhole(int table, const Unit &whole) const {
  SearchState other = without(table);
  std::vector<int> devices;
  for (int device = 0; device < context.deviceCount; ++device)
    if (other.fits(device, whole))
      devices.push_back(device);
  std::sort(devices.begin(), devices.end(), [&](int a, int b) {
    return std::pair(other.loadOf(a).compute.total(), a) <
           std::pair(other.loadOf(b).compute.total(), b);
  });
  if (devices.size() > kMaxTried)
    devices.resize(kMaxTried);
  std::optional<double> best;
  int bestDevice = 0;
  for (int device : devices) {
    double cost = other.costWith(device, whole);
    if (best && *best <= cost)
      continue;
    best = cost;
    bestDevice = device;
  }
  // costWith() uses the summary, costMs() all snapshots.
  if (!best || context.periods.empty())
    return best;
  std::vector<size_t> units = unitsOfTable.at(table);
  other.place(*std::min_element(units.begin(), units.end()), bestDevice);
  return other.costMs();
}

/// Free bytes of the roomiest device that may hold the table, without it.
int64_t Explainer::roomWithout(int table) const {
  UnitPtr whole = wholeOf(table);
  SearchState other = without(table);
  int64_t room = 0;
  for (int device = 0; device < context.deviceCount; ++device)
    if (other.admits(device, *whole))
      room = std::max(room, other.freeBytes(device));
  return room;
}

std::string Explainer::whyNotWhole(int table) const {
  UnitPtr whole = wholeOf(table);
  if (!whole)
    return context.rulesOf(table).fixed
               ? "its shards are written by hand"
               : "the rules for the table leave no other form";
  std::optional<double> cost = costWhole(table, *whole);
  if (!cost)
    return "whole" + others(table) + ", it needs " +
           formatBytes(whole->peakBytes()) + ", and no device has more than " +
           formatBytes(roomWithout(table)) + " left for it";
  double change = *cost / nowMs - 1;
  if (std::abs(change) < kSame)
    return "whole" + others(table) + ", a step would take as long";
  char text[96];
  std::snprintf(text, sizeof text, ", a step would take %s (%+.1f %%)",
                formatMs(*cost).c_str(), 100 * change);
  return "whole" + others(table) + text;
}

std::string Explainer::lineFor(int table) const {
  std::string how =
      isReplicated(table)
          ? std::string("is on every device")
          : "is cut into " + describeCut(context.table(table), pieces(table));
  return "table '" + context.table(table).name + "' " + how + "; " +
         whyNotWhole(table);
}

/// Tables that are cut alike share a line.
void Explainer::summarize(const std::vector<int> &tables,
                          std::vector<std::string> &lines) const {
  std::map<std::string, std::vector<int>> tablesOfCut;
  for (int table : tables)
    tablesOfCut[isReplicated(table)
                    ? std::string("on every device")
                    : "cut into " +
                          describeCut(context.table(table), pieces(table))]
        .push_back(table);
  for (const auto &[cut, members] : tablesOfCut) {
    std::string line = std::to_string(members.size()) +
                       (members.size() == 1 ? " table (" : " tables (");
    for (size_t i = 0; i < members.size() && i < kMaxNames; ++i)
      line += (i ? ", " : "") + context.table(members[i]).name;
    line += members.size() > kMaxNames ? ", ...) " : ") ";
    lines.push_back(line + cut);
  }
}

std::vector<std::string> Explainer::explain() {
  std::vector<std::string> lines;
  std::vector<int> rest;
  for (const auto &[table, units] : unitsOfTable) {
    if (units.size() == 1 && !isReplicated(table))
      continue;
    if (lines.size() < kMaxExplained && !context.deadlinePassed())
      lines.push_back(lineFor(table));
    else
      rest.push_back(table);
  }
  summarize(rest, lines);
  return lines;
}

} // namespace

std::vector<std::string>
neuroshard::explainCuts(const SearchState &state,
                        const std::vector<UnitPtr> &wholes) {
  return Explainer(state, wholes).explain();
}

std::vector<std::string>
neuroshard::explainBottleneck(const SearchState &state) {
  constexpr size_t kMaxShards = 4;
  const SearchContext &context = state.context();
  CostBreakdown cost = state.breakdown();
  auto slowest = [&](auto value) {
    int worst = 0;
    for (int device = 1; device < context.deviceCount; ++device)
      if (value(cost.devices[static_cast<size_t>(device)]) >
          value(cost.devices[static_cast<size_t>(worst)]))
        worst = device;
    return worst;
  };
  auto name = [&](const char *what, auto value) {
    int device = slowest(value);
    return "device " + std::to_string(device) + " in " + what + " (" +
           formatMs(value(cost.devices[static_cast<size_t>(device)])) + ")";
  };
  auto compute = [](const DeviceCost &at) { return at.compute.total(); };
  int worst = slowest(compute);
  std::string bottleneck = "bottleneck: ";
  if (context.options.objective.kind == ObjectiveKind::Published) {
    bottleneck +=
        name("compute and exchanges together", [](const DeviceCost &at) {
          return at.compute.total() + at.forwardCommunicationMs +
                 at.backwardCommunicationMs;
        });
  } else {
    bottleneck +=
        name("forward compute",
             [](const DeviceCost &at) { return at.compute.forwardMs; }) +
        ", " +
        name("backward compute",
             [](const DeviceCost &at) { return at.compute.backwardMs; }) +
        ", " +
        name("the forward exchange",
             [](const DeviceCost &at) { return at.forwardCommunicationMs; }) +
        ", " + name("the backward exchange", [](const DeviceCost &at) {
          return at.backwardCommunicationMs;
        });
  }
  std::vector<std::string> lines = {bottleneck};
  std::vector<const Unit *> units;
  for (size_t unit : state.unitsOn(worst))
    units.push_back(state.units()[unit].get());
  std::stable_sort(
      units.begin(), units.end(),
      [](const Unit *a, const Unit *b) { return a->aloneMs() > b->aloneMs(); });
  std::string line;
  for (size_t i = 0; i < std::min(kMaxShards, units.size()); ++i) {
    const Shard &shard = units[i]->shards.front();
    line += (i ? ", '" : "'") + shard.table + "' (" +
            std::to_string(shard.rows()) + " x " +
            std::to_string(shard.width()) + ", alone " +
            formatMs(units[i]->aloneMs()) + ")";
  }
  if (!line.empty())
    lines.push_back("costliest of " + std::to_string(units.size()) +
                    " shards on device " + std::to_string(worst) +
                    ", which computes longest: " + line);
  return lines;
}
