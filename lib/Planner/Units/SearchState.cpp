//===- SearchState.cpp - Units on devices, with memory and cost -----------===//

#include "SearchState.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

using namespace neuroshard;

namespace {

/// How much the 16-norm of the devices' values exceeds their maximum.
template <typename Value>
double normExcess(const std::vector<DeviceCost> &devices, Value value) {
  double largest = 0;
  for (const DeviceCost &device : devices)
    largest = std::max(largest, value(device));
  if (largest <= 0)
    return 0;
  double sum = 0;
  for (const DeviceCost &device : devices) {
    double x = value(device) / largest;
    x *= x;
    x *= x;
    x *= x;
    sum += x * x;
  }
  return largest * (std::sqrt(std::sqrt(std::sqrt(std::sqrt(sum)))) - 1);
}

double smoothExcess(const CostBreakdown &cost, ObjectiveKind kind) {
  auto excess = [&](auto value) { return normExcess(cost.devices, value); };
  if (kind == ObjectiveKind::Published)
    return excess([](const DeviceCost &d) {
      return d.compute.total() + d.forwardCommunicationMs +
             d.backwardCommunicationMs;
    });
  return excess([](const DeviceCost &d) { return d.compute.forwardMs; }) +
         excess([](const DeviceCost &d) { return d.compute.backwardMs; }) +
         excess([](const DeviceCost &d) { return d.forwardCommunicationMs; }) +
         excess([](const DeviceCost &d) { return d.backwardCommunicationMs; }) +
         excess([](const DeviceCost &d) { return d.inputMs; });
}

} // namespace

SearchState::SearchState(const SearchContext &context,
                         std::vector<UnitPtr> units)
    : owner(&context), allUnits(std::move(units)),
      devices(allUnits.size(), kUnplaced),
      slots(static_cast<size_t>(context.deviceCount)),
      loads(static_cast<size_t>(context.deviceCount)),
      hostBytes(context.problem.topology.hosts.size()),
      columnUnits(context.problem.tables.size()) {
  const SumEmbedding *embedding = context.model.sumEmbedding();
  for (int device = 0; device < context.deviceCount; ++device) {
    slot(device).memory = context.baseOf(device);
    if (embedding)
      slot(device).embedding.resize(static_cast<size_t>(embedding->size()));
  }
  for (const UnitPtr &unit : allUnits)
    countColumns(*unit, 1);
  for (size_t i = 0; i < allUnits.size(); ++i)
    if (allUnits[i]->forcedDevice != -1)
      place(i, allUnits[i]->forcedDevice);
}

void SearchState::countColumns(const Unit &unit, int sign) {
  for (size_t i = 0; i < unit.tables.size(); ++i) {
    int table = unit.tables[i];
    if (unit.shards[i].width() == context().table(table).dim)
      continue;
    int &count = columnUnits[static_cast<size_t>(table)];
    bool wasSplit = count > 0;
    count += sign;
    bool isSplit = count > 0;
    if (wasSplit == isSplit)
      continue;
    permuteBytes +=
        sign * columnPermuteBytes(context().problem, context().table(table),
                                  context().featuresOf(table));
  }
}

void SearchState::apply(int device, const Unit &unit, int sign) {
  Slot &target = slot(device);
  if (sign > 0)
    target.memory += unit.memory;
  else
    target.memory -= unit.memory;
  size_t size = target.embedding.size();
  size_t offset = context().classIndexOf(device) * size;
  for (size_t k = 0; k < size; ++k)
    target.embedding[k] += sign * unit.embedding[offset + k];
  target.shardCount += sign * static_cast<int>(unit.shards.size());
  addLoads(loads[static_cast<size_t>(device)], unit.load, sign);
  int host =
      context().problem.topology.devices[static_cast<size_t>(device)].host;
  hostBytes[static_cast<size_t>(host)] += sign * unit.memory.hostBytes;
  for (int table : unit.tables)
    for (int set : context().rulesOf(table).separateSets) {
      std::map<int, int> &use = separateUse[{device, set}];
      if ((use[table] += sign) == 0)
        use.erase(table);
    }
}

void SearchState::addTo(int device, size_t unit) {
  slot(device).units.push_back(unit);
  apply(device, *allUnits[unit], 1);
  loads[static_cast<size_t>(device)].compute =
      computeAfter({.device = device, .added = {}, .removed = {}});
}

void SearchState::removeFrom(int device, size_t unit) {
  std::vector<size_t> &list = slot(device).units;
  list.erase(std::find(list.begin(), list.end(), unit));
  apply(device, *allUnits[unit], -1);
  loads[static_cast<size_t>(device)].compute =
      computeAfter({.device = device, .added = {}, .removed = {}});
}

void SearchState::place(size_t unit, int device) {
  devices[unit] = device;
  if (device != Unit::kEverywhere)
    return addTo(device, unit);
  for (int each = 0; each < context().deviceCount; ++each)
    addTo(each, unit);
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
  countColumns(*allUnits[unit], -1);
  std::vector<size_t> indices = {unit};
  allUnits[unit] = parts.front();
  for (size_t i = 1; i < parts.size(); ++i) {
    indices.push_back(allUnits.size());
    allUnits.push_back(parts[i]);
    devices.push_back(kUnplaced);
  }
  for (const UnitPtr &part : parts)
    countColumns(*part, 1);
  return indices;
}

void SearchState::erase(size_t unit) {
  if (devices[unit] != kUnplaced)
    remove(unit);
  countColumns(*allUnits[unit], -1);
  size_t last = allUnits.size() - 1;
  if (unit != last) {
    if (devices[last] == Unit::kEverywhere) {
      for (Slot &each : slots)
        std::replace(each.units.begin(), each.units.end(), last, unit);
    } else if (devices[last] != kUnplaced) {
      std::vector<size_t> &list = slot(devices[last]).units;
      std::replace(list.begin(), list.end(), last, unit);
    }
    allUnits[unit] = allUnits[last];
    devices[unit] = devices[last];
  }
  allUnits.pop_back();
  devices.pop_back();
}

MemoryTerms SearchState::memoryAfter(const DeviceChange &change) const {
  MemoryTerms memory = slot(change.device).memory;
  for (const Unit *unit : change.added)
    memory += unit->memory;
  for (const Unit *unit : change.removed)
    memory -= unit->memory;
  return memory;
}

int64_t SearchState::usedBytes(int device) const {
  return slot(device).memory.peakBytes() + permuteBytes;
}

int64_t SearchState::freeBytes(int device) const {
  return context().memoryOf(device) - usedBytes(device);
}

bool SearchState::keepsApart(int device, const Unit &unit,
                             const std::vector<const Unit *> &leaving) const {
  for (int table : unit.tables)
    for (int set : context().rulesOf(table).separateSets) {
      auto found = separateUse.find({device, set});
      if (found == separateUse.end())
        continue;
      for (auto [other, count] : found->second) {
        int rest = count;
        for (const Unit *gone : leaving)
          rest -= static_cast<int>(
              std::count(gone->tables.begin(), gone->tables.end(), other));
        if (other != table && rest > 0)
          return false;
      }
    }
  return true;
}

bool SearchState::fits(const DeviceChange &change) const {
  MemoryTerms memory = memoryAfter(change);
  if (memory.peakBytes() + permuteBytes > context().memoryOf(change.device))
    return false;
  for (const Unit *unit : change.added)
    if (!allowsDevice(context(), *unit, change.device) ||
        !keepsApart(change.device, *unit, change.removed))
      return false;
  return true;
}

bool SearchState::fits(int device, const Unit &unit) const {
  return fits({.device = device, .added = {&unit}, .removed = {}});
}

bool SearchState::admits(int device, const Unit &unit) const {
  return allowsDevice(context(), unit, device) && keepsApart(device, unit, {});
}

bool SearchState::holdsSeparated(int device, const Unit &unit) const {
  for (int table : unit.tables)
    for (int set : context().rulesOf(table).separateSets) {
      auto found = separateUse.find({device, set});
      if (found != separateUse.end() && found->second.contains(table))
        return true;
    }
  return false;
}

bool SearchState::withinMemory() const {
  for (int device = 0; device < context().deviceCount; ++device)
    if (freeBytes(device) < 0)
      return false;
  for (size_t host = 0; host < hostBytes.size(); ++host)
    if (hostBytes[host] > context().problem.topology.hosts[host].memoryBytes)
      return false;
  return true;
}

ComputeMs SearchState::computeAfter(const DeviceChange &change) const {
  const Slot &current = slot(change.device);
  const DeviceClass &deviceClass = context().classOf(change.device);
  if (const SumEmbedding *embedding = context().model.sumEmbedding()) {
    size_t size = current.embedding.size();
    size_t offset = context().classIndexOf(change.device) * size;
    if (change.added.empty() && change.removed.empty())
      return embedding->head(current.embedding, current.shardCount,
                             deviceClass);
    static thread_local std::vector<double> sum;
    sum = current.embedding;
    int count = current.shardCount;
    for (const Unit *unit : change.added) {
      count += static_cast<int>(unit->shards.size());
      for (size_t k = 0; k < size; ++k)
        sum[k] += unit->embedding[offset + k];
    }
    for (const Unit *unit : change.removed) {
      count -= static_cast<int>(unit->shards.size());
      for (size_t k = 0; k < size; ++k)
        sum[k] -= unit->embedding[offset + k];
    }
    return embedding->head(sum, count, deviceClass);
  }
  ShardSet set{&deviceClass, {}};
  auto addAll = [&](const Unit &unit) {
    for (const ShardWork &work : unit.works)
      set.shards.push_back(&work);
  };
  for (size_t index : current.units) {
    const Unit *unit = allUnits[index].get();
    if (std::find(change.removed.begin(), change.removed.end(), unit) ==
        change.removed.end())
      addAll(*unit);
  }
  for (const Unit *unit : change.added)
    addAll(*unit);
  ComputeMs time;
  context().model.computeMs({&set, 1}, {&time, 1});
  return time;
}

DeviceLoad SearchState::loadAfter(const DeviceChange &change) const {
  DeviceLoad load = loadOf(change.device);
  for (const Unit *unit : change.added)
    addLoads(load, unit->load, 1);
  for (const Unit *unit : change.removed)
    addLoads(load, unit->load, -1);
  load.compute = computeAfter(change);
  return load;
}

CostBreakdown SearchState::breakdown() const {
  return composeCost(context().problem.topology, loads, context().model,
                     context().options.objective);
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
  std::vector<DeviceLoad> inPeriod(slots.size());
  std::vector<ShardSet> sets(slots.size());
  for (size_t d = 0; d < slots.size(); ++d) {
    sets[d].deviceClass = &context().classOf(static_cast<int>(d));
    for (size_t index : slots[d].units) {
      const Demand &demand = allUnits[index]->periods[period];
      addLoads(inPeriod[d], demand.load, 1);
      for (const ShardWork &work : demand.works)
        sets[d].shards.push_back(&work);
    }
  }
  std::vector<ComputeMs> computes(slots.size());
  context().model.computeMs(sets, computes);
  for (size_t d = 0; d < slots.size(); ++d)
    inPeriod[d].compute = computes[d];
  return composeCost(context().problem.topology, inPeriod, context().model,
                     context().options.objective)
      .costMs;
}

Trial SearchState::trial() const {
  CostBreakdown cost = breakdown();
  return {cost.costMs,
          cost.costMs + smoothExcess(cost, context().options.objective.kind)};
}

Trial SearchState::trialAfter(const std::vector<DeviceChange> &changes) {
  std::vector<DeviceLoad> before;
  for (const DeviceChange &change : changes) {
    DeviceLoad &load = loads[static_cast<size_t>(change.device)];
    before.push_back(load);
    load = loadAfter(change);
  }
  Trial result = trial();
  for (size_t i = 0; i < changes.size(); ++i)
    loads[static_cast<size_t>(changes[i].device)] = before[i];
  return result;
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
  int number = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    auto &[table, shard] = placed[i];
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
