//===- Migration.cpp - Bytes that move from one plan to the next ----------===//

#include "Migration.h"

#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Planner/Memory.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

using namespace neuroshard;

ShardsOfTable neuroshard::shardsByTable(const ShardingPlan &plan) {
  ShardsOfTable shards;
  for (const Shard &shard : plan.shards)
    shards[shard.table].push_back(&shard);
  return shards;
}

Overlap neuroshard::overlapOf(const Shard &a, const Shard &b) {
  int64_t rows =
      std::min(a.rowEnd, b.rowEnd) - std::max(a.rowBegin, b.rowBegin);
  int64_t columns =
      std::min(a.colEnd, b.colEnd) - std::max(a.colBegin, b.colBegin);
  return rows > 0 && columns > 0 ? Overlap{rows, columns} : Overlap();
}

double neuroshard::storedBytes(const Table &table, int64_t rows, int64_t width,
                               int64_t shardWidth) {
  double elements = static_cast<double>(rows) * static_cast<double>(width);
  double bytes =
      elements * static_cast<double>(elementBytes(table.elementType));
  OptimizerStates states = optimizerStates(table.optimizer.kind);
  // One number per row of the shard, counted by the share of its columns.
  return bytes + states.perElement * 4 * elements +
         states.perRow * 4 * elements / static_cast<double>(shardWidth);
}

namespace {

/// Bytes that migrate, per level of the topology and device.
class Flows {
public:
  explicit Flows(const Topology &topology)
      : topology(topology), in(topology.levels.size()),
        out(topology.levels.size()) {
    for (const TopologyLevel &level : topology.levels)
      groups.push_back(groupOfDevices(level));
    for (size_t level = 0; level < in.size(); ++level) {
      in[level].resize(topology.devices.size());
      out[level].resize(topology.devices.size());
    }
  }

  bool exists(int device) const {
    return device >= 0 && device < topology.deviceCount();
  }

  /// The level of the link between two devices; the outermost for devices that
  /// are gone.
  size_t levelBetween(int a, int b) const {
    size_t level = 0;
    while (exists(a) && exists(b) && level + 1 < groups.size() &&
           groups[level + 1][static_cast<size_t>(a)] ==
               groups[level + 1][static_cast<size_t>(b)])
      ++level;
    return level;
  }

  void add(int from, int to, double bytes) {
    size_t level = levelBetween(from, to);
    in[level][static_cast<size_t>(to)] += bytes;
    if (exists(from))
      out[level][static_cast<size_t>(from)] += bytes;
  }

  /// Time of the device that takes longest, over its slowest link.
  double milliseconds() const {
    double longest = 0;
    for (size_t level = 0; level < in.size(); ++level)
      for (size_t device = 0; device < in[level].size(); ++device)
        longest =
            std::max(longest, std::max(in[level][device], out[level][device]) /
                                  (topology.levels[level].bandwidthGBps * 1e6));
    return longest;
  }

private:
  const Topology &topology;
  std::vector<std::vector<int>> groups;
  std::vector<std::vector<double>> in, out;
};

/// The parts of one table that come to one device, by shard of the old plan.
class TableDiff {
public:
  TableDiff(const Table &table, const std::vector<const Shard *> &before,
            Flows &flows)
      : table(table), before(before), flows(flows) {}

  void add(const Shard &shard) {
    for (int device : shard.devices)
      for (const Shard *source : before)
        take(shard, *source, device);
  }

  TableMove move() const {
    constexpr size_t kMaxListed = 4;
    TableMove result;
    result.table = table.name;
    result.bytes = std::llround(bytes);
    for (size_t i = 0; i < std::min(kMaxListed, parts.size()); ++i)
      result.what += (i ? ", " : "") + parts[i];
    if (parts.size() > kMaxListed)
      result.what.append(" and ")
          .append(std::to_string(parts.size() - kMaxListed))
          .append(" more");
    return result;
  }

private:
  int nearest(const Shard &source, int device) const {
    return *std::max_element(
        source.devices.begin(), source.devices.end(), [&](int a, int b) {
          return flows.levelBetween(a, device) < flows.levelBetween(b, device);
        });
  }

  void take(const Shard &shard, const Shard &source, int device) {
    Overlap shared = overlapOf(shard, source);
    if (shared.rows == 0 ||
        std::find(source.devices.begin(), source.devices.end(), device) !=
            source.devices.end())
      return;
    double moved =
        storedBytes(table, shared.rows, shared.columns, shard.width());
    int from = nearest(source, device);
    flows.add(from, device, moved);
    bytes += moved;
    Shard part = shard;
    part.rowBegin = std::max(shard.rowBegin, source.rowBegin);
    part.rowEnd = part.rowBegin + shared.rows;
    part.colBegin = std::max(shard.colBegin, source.colBegin);
    part.colEnd = part.colBegin + shared.columns;
    parts.push_back(formatRange(part) + " from device " + std::to_string(from) +
                    " to " + std::to_string(device));
  }

  const Table &table;
  const std::vector<const Shard *> &before;
  Flows &flows;
  double bytes = 0;
  std::vector<std::string> parts;
};

} // namespace

static int64_t dimOf(const std::vector<const Shard *> &shards) {
  int64_t dim = 0;
  for (const Shard *shard : shards)
    dim = std::max(dim, shard->colEnd);
  return dim;
}

Migration neuroshard::migrationBetween(const ShardingProblem &problem,
                                       const ShardingPlan &previous,
                                       const ShardingPlan &next) {
  Migration migration;
  Flows flows(problem.topology);
  ShardsOfTable before = shardsByTable(previous), after = shardsByTable(next);
  for (const Table &table : problem.tables) {
    auto old = before.find(table.name);
    auto now = after.find(table.name);
    // With another dim it is another table, whose weights start anew.
    if (old == before.end() || now == after.end() ||
        dimOf(old->second) != table.dim)
      continue;
    TableDiff diff(table, old->second, flows);
    for (const Shard *shard : now->second)
      diff.add(*shard);
    TableMove move = diff.move();
    if (move.bytes == 0)
      continue;
    migration.bytes += move.bytes;
    migration.moves.push_back(std::move(move));
  }
  std::stable_sort(
      migration.moves.begin(), migration.moves.end(),
      [](const TableMove &a, const TableMove &b) { return a.bytes > b.bytes; });
  migration.moveMs = flows.milliseconds();
  return migration;
}

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

/// The previous shards of a table, fitted to its rows of today; nothing when
/// they cannot hold it.
static std::vector<Shard> fitToTable(const Table &table,
                                     const std::vector<const Shard *> &old,
                                     int deviceCount) {
  int64_t oldRows = 0;
  for (const Shard *shard : old)
    oldRows = std::max(oldRows, shard->rowEnd);
  if (dimOf(old) != table.dim)
    return {};
  std::vector<Shard> shards;
  for (const Shard *shard : old) {
    Shard copy = *shard;
    bool last = shard->rowEnd == oldRows;
    copy.rowEnd = last ? table.rows : std::min(shard->rowEnd, table.rows);
    if (copy.rowBegin >= copy.rowEnd)
      continue;
    for (int device : copy.devices)
      if (device >= deviceCount && !copy.replicated())
        return {};
    // Replicas are on all devices of today.
    if (copy.replicated()) {
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
