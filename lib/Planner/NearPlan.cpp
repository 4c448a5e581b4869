//===- NearPlan.cpp - Better plans near one in use ------------------------===//
///
/// \file
/// Puts a plan on a board and takes the default search's closing steps from
/// there, as far as each saves more than moving its bytes costs.
//===----------------------------------------------------------------------===//

#include "Algorithms.h"
#include "Anneal.h"
#include "Residence.h"

#include <algorithm>
#include <map>
#include <tuple>

using namespace neuroshard;

namespace {

constexpr int64_t kBudget = 200000;

/// A plan as units: those before any cut, and those placed.
class PlanReader {
public:
  PlanReader(const SearchContext &context, const ShardingPlan &plan)
      : context(context) {
    for (const Shard &shard : plan.shards)
      shardsOfTable[context.tableIndex(shard.table)].push_back(&shard);
  }

  /// False when the plan is not made of these units.
  bool read(const std::vector<UnitPtr> &units);
  SearchState state() const;

  std::vector<UnitPtr> wholes;

private:
  bool readUnit(const UnitPtr &unit);
  bool readSet(const UnitPtr &unit);
  std::vector<Shard> within(const Shard &rectangle, int table) const;
  void place(std::vector<Shard> shards, int device);

  const SearchContext &context;
  std::map<int, std::vector<const Shard *>> shardsOfTable;
  std::vector<UnitPtr> placed;
  std::vector<int> devices;
};

/// The plan's shards inside a rectangle, in order; none of the plan's own
/// names.
std::vector<Shard> PlanReader::within(const Shard &rectangle, int table) const {
  std::vector<Shard> inside;
  auto found = shardsOfTable.find(table);
  if (found == shardsOfTable.end())
    return inside;
  for (const Shard *shard : found->second)
    if (shard->tier == rectangle.tier &&
        rectangle.rowBegin <= shard->rowBegin &&
        shard->rowEnd <= rectangle.rowEnd &&
        rectangle.colBegin <= shard->colBegin &&
        shard->colEnd <= rectangle.colEnd) {
      inside.push_back(*shard);
      inside.back().name.clear();
    }
  std::sort(inside.begin(), inside.end(), [](const Shard &a, const Shard &b) {
    return std::tie(a.rowBegin, a.colBegin) < std::tie(b.rowBegin, b.colBegin);
  });
  return inside;
}

void PlanReader::place(std::vector<Shard> shards, int device) {
  for (Shard &shard : shards)
    shard.devices.clear();
  placed.push_back(makeUnit(context, std::move(shards)));
  devices.push_back(device);
}

static int64_t areaOf(const std::vector<Shard> &shards) {
  int64_t area = 0;
  for (const Shard &shard : shards)
    area += shard.rows() * shard.width();
  return area;
}

/// Co-located tables are cut and placed alike.
bool PlanReader::readSet(const UnitPtr &unit) {
  std::vector<std::vector<Shard>> parts;
  for (size_t i = 0; i < unit->shards.size(); ++i) {
    parts.push_back(within(unit->shards[i], unit->tables[i]));
    if (areaOf(parts[i]) != areaOf({unit->shards[i]}) ||
        parts[i].size() != parts[0].size())
      return false;
  }
  for (size_t k = 0; k < parts[0].size(); ++k) {
    std::vector<Shard> together;
    for (const std::vector<Shard> &part : parts) {
      if (part[k].devices != parts[0][k].devices)
        return false;
      together.push_back(part[k]);
    }
    place(std::move(together), parts[0][k].devices.front());
  }
  wholes.push_back(unit);
  return true;
}

bool PlanReader::readUnit(const UnitPtr &unit) {
  if (unit->forcedDevice != -1) {
    placed.push_back(unit);
    devices.push_back(unit->forcedDevice);
    wholes.push_back(unit);
    return true;
  }
  if (unit->shards.size() > 1)
    return readSet(unit);
  std::vector<Shard> parts = within(unit->shards.front(), unit->tables.front());
  if (areaOf(parts) != areaOf(unit->shards))
    return false;
  if (parts.front().replicated()) {
    placed.push_back(makeUnit(context, parts, Unit::kEverywhere));
    devices.push_back(Unit::kEverywhere);
    return true;
  }
  for (Shard &part : parts) {
    int device = part.devices.front();
    place({std::move(part)}, device);
  }
  wholes.push_back(unit);
  return true;
}

bool PlanReader::read(const std::vector<UnitPtr> &units) {
  return std::all_of(units.begin(), units.end(),
                     [&](const UnitPtr &unit) { return readUnit(unit); });
}

SearchState PlanReader::state() const {
  SearchState state(context, placed);
  for (size_t i = 0; i < placed.size(); ++i)
    if (placed[i]->forcedDevice == -1)
      state.place(i, devices[i]);
  return state;
}

} // namespace

Outcome neuroshard::searchNear(const SearchContext &context,
                               const std::vector<UnitPtr> &units,
                               const ShardingPlan &plan, double msPerByte) {
  Outcome outcome;
  PlanReader reader(context, plan);
  if (!reader.read(units))
    return outcome;
  SearchState start = reader.state();
  if (!start.withinMemory())
    return outcome;
  Board board(context, reader.wholes, start);
  Residence residence(board, msPerByte);
  descend(board, kBudget, outcome.evaluations, &residence);
  outcome.state.emplace(board.state());
  outcome.stopReason = context.deadlinePassed()
                           ? "deadline"
                           : "no step saves more than its move costs";
  return outcome;
}
