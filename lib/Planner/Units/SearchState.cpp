//===- SearchState.cpp - Units on devices, with memory and cost -----------===//

#include "SearchState.h"

#include "neuroshard/Model/TableFingerprint.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

using namespace neuroshard;

SearchState::SearchState(const SearchContext &context,
                         std::vector<UnitPtr> units)
    : owner(&context), allUnits(std::move(units)),
      devices(allUnits.size(), kUnplaced),
      lists(static_cast<size_t>(context.deviceCount)), sums(context),
      cuts(context) {
  for (const UnitPtr &unit : allUnits)
    cuts.add(*unit);
  for (size_t i = 0; i < allUnits.size(); ++i)
    if (allUnits[i]->forcedDevice != -1)
      hold(i, allUnits[i]->forcedDevice);
  // Once for all units of a device.
  for (int device = 0; device < context.deviceCount; ++device)
    if (!unitsOn(device).empty())
      updateCompute(device);
}

void SearchState::updateCompute(int device) {
  sums.in(kSummary).setCompute(device, computeOf(device, nullptr));
}

void SearchState::hold(size_t unit, int device) {
  devices[unit] = device;
  bool isEverywhere = device == Unit::kEverywhere;
  int end = isEverywhere ? context().deviceCount : device + 1;
  for (int each = isEverywhere ? 0 : device; each < end; ++each) {
    lists[static_cast<size_t>(each)].push_back(unit);
    sums.add(each, *allUnits[unit]);
  }
}

void SearchState::removeFrom(int device, size_t unit) {
  std::vector<size_t> &list = lists[static_cast<size_t>(device)];
  list.erase(std::find(list.begin(), list.end(), unit));
  sums.remove(device, *allUnits[unit]);
  updateCompute(device);
}

void SearchState::place(size_t unit, int device) {
  hold(unit, device);
  if (device != Unit::kEverywhere)
    return updateCompute(device);
  for (int each = 0; each < context().deviceCount; ++each)
    updateCompute(each);
}

void SearchState::remove(size_t unit) {
  int device = devices[unit];
  devices[unit] = kUnplaced;
  if (device != Unit::kEverywhere)
    return removeFrom(device, unit);
  for (int each = 0; each < context().deviceCount; ++each)
    removeFrom(each, unit);
}

std::vector<size_t> SearchState::replace(size_t unit,
                                         const std::vector<UnitPtr> &parts) {
  if (devices[unit] != kUnplaced)
    remove(unit);
  cuts.remove(*allUnits[unit]);
  std::vector<size_t> indices = {unit};
  allUnits[unit] = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    indices.push_back(allUnits.size());
    allUnits.push_back(parts[i]);
    devices.push_back(kUnplaced);
  }
  for (const UnitPtr &part : parts)
    cuts.add(*part);
  return indices;
}

void SearchState::erase(size_t unit) {
  if (devices[unit] != kUnplaced)
    remove(unit);
  cuts.remove(*allUnits[unit]);
  size_t last = allUnits.size() - 1;
  if (unit != last) {
    if (devices[last] == Unit::kEverywhere) {
      for (std::vector<size_t> &list : lists)
        std::replace(list.begin(), list.end(), last, unit);
    } else if (devices[last] != kUnplaced) {
      std::vector<size_t> &list = lists[static_cast<size_t>(devices[last])];
      std::replace(list.begin(), list.end(), last, unit);
    }
    allUnits[unit] = allUnits[last];
    devices[unit] = devices[last];
  }
  allUnits.pop_back();
  devices.pop_back();
}

int64_t SearchState::usedBytes(int device) const {
  return context().peakOf(sums.memoryOf(device)) + permuteBytes();
}

int64_t SearchState::freeBytes(int device) const {
  return context().memoryOf(device) - usedBytes(device);
}

double SearchState::roomFor(int device, const Unit &unit) const {
  auto timesIn = [](int64_t room, int64_t bytes) {
    return bytes > 0 ? static_cast<double>(std::max<int64_t>(0, room)) /
                           static_cast<double>(bytes)
                     : std::numeric_limits<double>::infinity();
  };
  // What caches share comes once.
  Footprint after = sums.memoryOf(device);
  CacheBytes before = context().sharedBytesOf(after);
  after += unit.footprint;
  CacheBytes shared = context().sharedBytesOf(after);
  return std::min(
      {timesIn(freeBytes(device) - (shared.device - before.device),
               unit.peakBytes()),
       timesIn(sums.freeHostBytes(device) - (shared.host - before.host),
               unit.footprint.hostBytes),
       timesIn(sums.freeDiskBytes(device), unit.footprint.diskBytes)});
}

bool SearchState::fits(int device, const Unit &unit) const {
  Footprint memory = sums.memoryOf(device);
  memory += unit.footprint;
  return context().peakOf(memory) + permuteBytes() <=
             context().memoryOf(device) &&
         sums.hostHolds(device, unit.footprint) && admits(device, unit);
}

bool SearchState::admits(int device, const Unit &unit) const {
  return allowsDevice(context(), unit, device) &&
         sums.separation().admits(device, unit);
}

bool SearchState::withinMemory() const {
  for (int device = 0; device < context().deviceCount; ++device)
    if (freeBytes(device) < 0)
      return false;
  return sums.withinHosts();
}

ComputeMs SearchState::computeWith(int device, const Unit &unit) const {
  return computeOf(device, &unit);
}

ComputeMs SearchState::computeOf(int device, const Unit *added) const {
  const DeviceClass &deviceClass = context().classOf(device);
  if (const SumEmbedding *embedding = context().model.sumEmbedding()) {
    std::span<const double> sum = sums.in(kSummary).embeddingOf(device);
    int shards = sums.shardsOn(device);
    if (!added)
      return embedding->head(sum, shards, deviceClass);
    static thread_local std::vector<double> with;
    with.assign(sum.begin(), sum.end());
    size_t offset = context().classIndexOf(device) * with.size();
    for (size_t k = 0; k < with.size(); ++k)
      with[k] += added->embedding[offset + k];
    return embedding->head(with, shards + added->shardCount(), deviceClass);
  }
  ShardSet set{&deviceClass, {}};
  auto addAll = [&](const Unit &unit) {
    for (const ShardWork &work : unit.works)
      set.shards.push_back(&work);
  };
  for (size_t index : unitsOn(device))
    addAll(*allUnits[index]);
  if (added)
    addAll(*added);
  ComputeMs time;
  context().model.computeMs({&set, 1}, {&time, 1});
  return time;
}

std::vector<OwnedRows>
SearchState::ownedRows(int period, std::optional<Added> added) const {
  std::vector<OwnedRows> owned;
  auto add = [&](const Unit &unit, int device) {
    const std::vector<ShardWork> &works = unit.in(period).works;
    for (size_t k = 0; k < unit.shards.size() && device >= 0; ++k)
      if (const Shard &shard = unit.shards[k]; !shard.hasCopies())
        owned.push_back({unit.tables[k],
                         device,
                         {shard.rowBegin, shard.rowEnd},
                         works[k].groupInputBytes,
                         works[k].normBytes});
  };
  for (size_t i = 0; i < allUnits.size(); ++i)
    add(*allUnits[i], devices[i]);
  if (added)
    add(*added->unit, added->device);
  return owned;
}

CostBreakdown SearchState::compose(std::span<const DeviceLoad> loads,
                                   int period,
                                   std::optional<Added> added) const {
  const Topology &topology = context().problem.topology;
  if (relays.empty())
    return composeCost(topology, loads, context().model,
                       context().options.objective);
  std::vector<DeviceLoad> direct(loads.begin(), loads.end());
  shareInGroups(relayGroupSize(context().problem), ownedRows(period, added),
                direct);
  std::vector<RelayLoad> relayed = relayLoads(relays, direct);
  return composeCost(topology, direct, context().model,
                     context().options.objective, relayed);
}

CostBreakdown SearchState::breakdown() const {
  return compose(sums.in(kSummary).loads(), kSummary);
}

double SearchState::costWith(int device, const Unit &unit) const {
  std::span<const DeviceLoad> now = sums.in(kSummary).loads();
  std::vector<DeviceLoad> loads(now.begin(), now.end());
  DeviceLoad &load = loads[static_cast<size_t>(device)];
  addLoads(load, unit.load, 1);
  load.compute = computeWith(device, unit);
  return compose(loads, kSummary, Added{device, &unit}).costMs;
}

double SearchState::costMs() const {
  if (context().periods.empty())
    return breakdown().costMs;
  double mean = 0;
  for (size_t period = 0; period < context().periods.size(); ++period)
    mean += context().shares[period] * costInMs(period);
  return mean;
}

double SearchState::costInMs(size_t period) const {
  std::vector<DeviceLoad> inPeriod(lists.size());
  std::vector<ShardSet> sets(lists.size());
  for (size_t d = 0; d < lists.size(); ++d) {
    sets[d].deviceClass = &context().classOf(static_cast<int>(d));
    for (size_t index : lists[d]) {
      const Demand &demand = allUnits[index]->periods[period];
      addLoads(inPeriod[d], demand.load, 1);
      for (const ShardWork &work : demand.works)
        sets[d].shards.push_back(&work);
    }
  }
  std::vector<ComputeMs> computes(lists.size());
  context().model.computeMs(sets, computes);
  for (size_t d = 0; d < lists.size(); ++d)
    inPeriod[d].compute = computes[d];
  return compose(inPeriod, static_cast<int>(period)).costMs;
}

ShardingPlan SearchState::plan() const {
  ShardingPlan plan;
  plan.deviceCount = context().deviceCount;
  plan.optimizerSemantics = context().problem.optimizerSemantics;
  plan.fingerprint = tableFingerprint(context().problem.tables);
  std::vector<std::pair<int, Shard>> placed;
  std::set<std::string> handNames;
  for (size_t i = 0; i < allUnits.size(); ++i) {
    const Unit &unit = *allUnits[i];
    for (size_t k = 0; k < unit.shards.size(); ++k) {
      Shard shard = unit.shards[k];
      if (!unit.writtenByHand && devices[i] != Unit::kEverywhere)
        shard.devices = {devices[i]};
      if (unit.writtenByHand)
        handNames.insert(shard.name);
      placed.emplace_back(unit.tables[k], std::move(shard));
    }
  }
  std::sort(placed.begin(), placed.end(), [](const auto &a, const auto &b) {
    return std::tie(a.first, a.second.rowBegin, a.second.colBegin) <
           std::tie(b.first, b.second.rowBegin, b.second.colBegin);
  });
  Route free =
      relayGroupSize(context().problem) > 0 ? Route::Direct : Route::Auto;
  std::map<int, Route> routes;
  for (const Shard &shard : context().problem.constraints.fixedShards)
    routes.try_emplace(context().tableIndex(shard.table), shard.route);
  int number = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    auto &[table, shard] = placed[i];
    auto route = routes.find(table);
    shard.route = route == routes.end() ? free : route->second;
    if (i == 0 || placed[i - 1].first != table)
      number = 0;
    while (shard.name.empty()) {
      std::string name = shard.table + "_" + std::to_string(number++);
      if (!handNames.contains(name))
        shard.name = name;
    }
    plan.shards.push_back(std::move(shard));
  }
  return plan;
}
