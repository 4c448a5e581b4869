//===- PlanUnits.cpp - Units and placement read from a plan ---------------===//

#include "PlanUnits.h"

#include "Forms/TableForms.h"

#include <algorithm>
#include <tuple>

using namespace neuroshard;

/// The plan's shards inside a rectangle, sorted and without names.
std::vector<Shard> PlanUnits::within(const Shard &rectangle, int table) const {
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

void PlanUnits::place(std::vector<Shard> shards, int device) {
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
bool PlanUnits::readSet(const UnitPtr &unit) {
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

/// Does the plan have exactly the unit's rectangles, on the unit's devices?
bool PlanUnits::isInPlace(const Unit &unit) const {
  for (size_t i = 0; i < unit.shards.size(); ++i) {
    std::vector<Shard> parts = within(unit.shards[i], unit.tables[i]);
    bool everywhere = unit.forcedDevice == Unit::kEverywhere;
    if (areaOf(parts) != areaOf({unit.shards[i]}) ||
        parts.front().hasCopies() != everywhere ||
        (!everywhere && parts.front().devices.front() != unit.forcedDevice))
      return false;
  }
  return true;
}

bool PlanUnits::readUnit(const UnitPtr &unit) {
  if (unit->forcedDevice != -1) {
    if (!isInPlace(*unit))
      return false;
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
  if (parts.front().hasCopies()) {
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

bool PlanUnits::readAll(const std::vector<UnitPtr> &units) {
  return std::all_of(units.begin(), units.end(),
                     [&](const UnitPtr &unit) { return readUnit(unit); });
}

/// Takes the plan's form of a table that may have several forms.
bool PlanUnits::read(const std::vector<UnitPtr> &units) {
  for (const FormEntry &entry : formEntries(context, units)) {
    size_t regions = wholes.size(), pieces = placed.size();
    if (readAll(entry.given.units))
      continue;
    wholes.resize(regions);
    placed.resize(pieces);
    devices.resize(pieces);
    if (entry.table < 0 || !readUnit(wholeTable(context, entry.table)))
      return false;
  }
  return true;
}

SearchState PlanUnits::state() const {
  SearchState state(context, placed);
  for (size_t i = 0; i < placed.size(); ++i)
    if (placed[i]->forcedDevice == -1)
      state.place(i, devices[i]);
  return state;
}
