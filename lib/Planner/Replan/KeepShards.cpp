//===- KeepShards.cpp - Shards of a previous plan that may stay -----------===//

#include "KeepShards.h"

#include "Migration.h"
#include "Units/SearchContext.h"
#include "Units/TargetRules.h"
#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/StoredBytes.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/PlanMemory.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

using namespace neuroshard;

Diagnostics neuroshard::checkPrevious(const ShardingPlan &previous) {
  Diagnostics errors;
  std::set<std::string_view> names;
  for (size_t i = 0; i < previous.shards.size(); ++i) {
    const std::string &name = previous.shards[i].name;
    if (name.empty())
      errors.push_back({"previous plan, shards[" + std::to_string(i) + "]",
                        "a shard needs a name"});
    else if (!names.insert(name).second)
      errors.push_back({"previous plan, shard '" + name + "'",
                        "another shard has the same name"});
  }
  for (auto &[name, shards] : shardsByTable(previous)) {
    // Check the shards against a table that just holds all of them.
    Table table;
    table.name = name;
    int devices = 1;
    for (const Shard *shard : shards) {
      table.rows = std::max(table.rows, shard->rowEnd);
      table.dim = std::max(table.dim, shard->colEnd);
      for (int device : shard->devices)
        devices = std::max(devices, device + 1);
    }
    size_t before = errors.size();
    for (const Shard *shard : shards)
      checkShardShape(table, *shard, devices,
                      "previous plan, shard '" + shard->name + "'", errors);
    if (errors.size() == before)
      checkOverlap(table, shards, errors);
  }
  return errors;
}

ShardingPlan neuroshard::withoutCopies(ShardingPlan previous) {
  std::map<std::string_view, int> shardsOfTable;
  for (const Shard &shard : previous.shards)
    ++shardsOfTable[shard.table];
  for (Shard &shard : previous.shards) {
    shard.syncEvery = 0; // the rules of tables say which copies drift
    if (static_cast<int>(shard.devices.size()) != previous.deviceCount ||
        shardsOfTable[shard.table] > 1)
      shard.devices.resize(1);
  }
  return previous;
}

/// The previous shards of a table, fitted to its rows of today; nothing when
/// they cannot hold it.
static std::vector<Shard> fitToTable(const Table &table,
                                     const std::vector<const Shard *> &old,
                                     int deviceCount) {
  int64_t oldRows = 0;
  for (const Shard *shard : old)
    oldRows = std::max(oldRows, shard->rowEnd);
  if (coveredDim(old) != table.dim)
    return {};
  std::vector<Shard> shards;
  for (const Shard *shard : old) {
    Shard copy = *shard;
    bool last = shard->rowEnd == oldRows;
    copy.rowEnd = last ? table.rows : std::min(shard->rowEnd, table.rows);
    if (copy.rowBegin >= copy.rowEnd)
      continue;
    for (int device : copy.devices)
      if (device >= deviceCount && !copy.hasCopies())
        return {};
    // Replicas are on all devices of today.
    if (copy.hasCopies()) {
      copy.devices.resize(static_cast<size_t>(deviceCount));
      std::iota(copy.devices.begin(), copy.devices.end(), 0);
    }
    shards.push_back(std::move(copy));
  }
  std::vector<const Shard *> pointers;
  for (const Shard &shard : shards)
    pointers.push_back(&shard);
  Diagnostics gaps;
  checkGaps(table, pointers, gaps);
  return gaps.empty() ? shards : std::vector<Shard>();
}

std::vector<Shard> neuroshard::shardsToKeep(const ShardingProblem &problem,
                                            const ShardingPlan &previous) {
  std::set<std::string> names;
  std::set<std::string_view> fixed;
  for (const Shard &shard : problem.constraints.fixedShards) {
    names.insert(shard.name);
    fixed.insert(shard.table);
  }
  ShardsOfTable before = shardsByTable(previous);
  std::vector<Shard> kept;
  for (const Table &table : problem.tables) {
    auto old = before.find(table.name);
    if (old == before.end() || fixed.contains(table.name))
      continue;
    for (Shard &shard :
         fitToTable(table, old->second, problem.topology.deviceCount())) {
      while (!names.insert(shard.name).second)
        shard.name += "_kept";
      kept.push_back(std::move(shard));
    }
  }
  return kept;
}

namespace {

/// Removes tables from a list of shards until it breaks no rule.
class Keeper {
public:
  Keeper(const SearchContext &context, std::vector<Shard> shards)
      : context(context), shards(std::move(shards)) {}

  Kept run();
  void release(const std::string &table, const std::string &why);

private:
  std::string brokenRule(int table, const std::vector<const Shard *> &of) const;
  void followTableRules();
  void followSets();
  void fitMemory();
  std::set<int> devicesOf(int table) const;
  double bytesOn(int device, std::string_view table) const;

  const SearchContext &context;
  std::vector<Shard> shards;
  std::vector<std::string> released;
};

void Keeper::release(const std::string &table, const std::string &why) {
  size_t before = shards.size();
  std::erase_if(shards,
                [&](const Shard &shard) { return shard.table == table; });
  if (shards.size() != before)
    released.push_back("table '" + table + "' cannot stay: " + why);
}

/// The rule for one table that its shards break; empty when none.
std::string Keeper::brokenRule(int table,
                               const std::vector<const Shard *> &of) const {
  const TableRules &rules = context.rulesOf(table);
  const Table &source = context.table(table);
  for (const Shard *shard : of) {
    for (int device : shard->devices)
      if (!rules.allowsDevice(device))
        return "it may not be on device " + std::to_string(device);
    Diagnostics errors;
    checkTier(context.problem, *shard, "", errors);
    if (!errors.empty())
      return errors.front().message;
    if (shard->width() < std::min(rules.minWidth, source.dim))
      return "a shard of " + std::to_string(shard->width()) +
             " columns is below its minimum of " +
             std::to_string(rules.minWidth);
  }
  ShardingKind kind = classify(source, of, context.innerGroupOfDevice);
  if (!rules.allows(kind))
    return "it may not be sharded " + std::string(toString(kind));
  return targetObjection(context.problem, table, of);
}

void Keeper::followTableRules() {
  ShardingPlan plan;
  plan.shards = shards;
  for (const auto &[name, of] : shardsByTable(plan))
    if (std::string why = brokenRule(context.tableIndex(name), of);
        !why.empty())
      release(std::string(name), why);
}

std::set<int> Keeper::devicesOf(int table) const {
  std::set<int> devices;
  const auto &fixed = context.problem.constraints.fixedShards;
  for (const std::vector<Shard> *list : {&shards, &fixed})
    for (const Shard &shard : *list)
      if (shard.table == context.table(table).name)
        devices.insert(shard.devices.begin(), shard.devices.end());
  return devices;
}

void Keeper::followSets() {
  for (const std::vector<int> &set : context.problem.constraints.coLocate)
    for (int table : set)
      if (devicesOf(table) != devicesOf(set.front()))
        for (int member : set)
          release(context.table(member).name,
                  "co-located tables are on different devices");
  for (const std::vector<int> &set : context.problem.constraints.separate) {
    std::set<int> taken;
    for (int table : set) {
      std::set<int> devices = devicesOf(table);
      if (std::any_of(devices.begin(), devices.end(),
                      [&](int device) { return taken.contains(device); }))
        release(context.table(table).name,
                "it shares a device with a table it is separated from");
      else
        taken.insert(devices.begin(), devices.end());
    }
  }
}

/// Weights and state of a table on a device.
double Keeper::bytesOn(int device, std::string_view table) const {
  double bytes = 0;
  for (const Shard &shard : shards)
    if (shard.table == table &&
        std::find(shard.devices.begin(), shard.devices.end(), device) !=
            shard.devices.end())
      bytes += storedBytes(context.table(context.tableIndex(table)),
                           shard.rows(), shard.width(), shard.width());
  return bytes;
}

/// While a device is above its memory, removes the smallest of its tables that
/// is as large as the excess, or else the largest.
void Keeper::fitMemory() {
  const Constraints &constraints = context.problem.constraints;
  while (true) {
    std::vector<Shard> all = shards;
    all.insert(all.end(), constraints.fixedShards.begin(),
               constraints.fixedShards.end());
    MemoryReport memory = planMemory(context.problem, all);
    int device = 0;
    int64_t excess = 0;
    for (int d = 0; d < context.deviceCount && excess <= 0; ++d) {
      device = d;
      excess = memory.devices[static_cast<size_t>(d)].peakBytes() -
               context.memoryOf(d);
    }
    if (excess <= 0)
      return;
    std::vector<std::pair<double, std::string>> tables;
    for (const Shard &shard : shards)
      if (double bytes = bytesOn(device, shard.table); bytes > 0)
        tables.emplace_back(bytes, shard.table);
    if (tables.empty())
      return;
    std::sort(tables.begin(), tables.end());
    auto enough = std::find_if(tables.begin(), tables.end(), [&](auto &table) {
      return table.first >= static_cast<double>(excess);
    });
    const std::string &name =
        enough == tables.end() ? tables.back().second : enough->second;
    release(std::string(name), "device " + std::to_string(device) +
                                   " would be " + formatBytes(excess) +
                                   " above its memory");
  }
}

Kept Keeper::run() {
  followTableRules();
  followSets();
  fitMemory();
  return {std::move(shards), std::move(released)};
}

} // namespace

Kept neuroshard::keepWhatServes(const ShardingProblem &problem,
                                const CostModel &model,
                                const SearchOptions &options,
                                const ShardingPlan &previous) {
  SearchContext context(problem, model, options);
  return Keeper(context, shardsToKeep(problem, previous)).run();
}

Kept neuroshard::keepLess(const ShardingProblem &problem, const Kept &kept,
                          double share) {
  std::map<std::string, double> bytes;
  double total = 0;
  for (const Shard &shard : kept.shards) {
    const Table &table =
        problem.tables[static_cast<size_t>(problem.tableIndex(shard.table))];
    double stored =
        storedBytes(table, shard.rows(), shard.width(), shard.width());
    bytes[shard.table] += stored;
    total += stored;
  }
  std::vector<std::pair<double, std::string>> smallest;
  for (const auto &[table, stored] : bytes)
    smallest.emplace_back(stored, table);
  std::sort(smallest.begin(), smallest.end());
  Kept less = kept;
  double gone = 0;
  for (const auto &[stored, table] : smallest) {
    if (gone >= share * total)
      break;
    gone += stored;
    std::erase_if(less.shards,
                  [&](const Shard &shard) { return shard.table == table; });
    less.released.push_back("table '" + table +
                            "' cannot stay: others need its room");
  }
  return less;
}

void neuroshard::keepNames(const ShardingProblem &problem,
                           const ShardingPlan &previous, ShardingPlan &plan) {
  ShardsOfTable before = shardsByTable(previous);
  std::set<std::string> taken, byHand;
  for (const Shard &shard : problem.constraints.fixedShards)
    byHand.insert(shard.name);
  taken = byHand;
  std::vector<Shard *> others;
  for (Shard &shard : plan.shards) {
    if (byHand.contains(shard.name))
      continue;
    auto old = before.find(shard.table);
    const Shard *same = nullptr;
    if (old != before.end())
      for (const Shard *candidate : old->second) {
        Shard renamed = *candidate;
        renamed.name = shard.name;
        same = renamed == shard ? candidate : same;
      }
    if (same && taken.insert(same->name).second)
      shard.name = same->name;
    else
      others.push_back(&shard);
  }
  for (Shard *shard : others) {
    int number = 0;
    for (std::string name = shard->name; !taken.insert(shard->name).second;)
      shard->name = name + "_" + std::to_string(++number);
  }
}
