//===- Migration.cpp - Bytes that move from one plan to the next ----------===//

#include "Migration.h"

#include "neuroshard/Model/Coverage.h"
#include "neuroshard/Model/StoredBytes.h"

#include <algorithm>

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

int64_t neuroshard::coveredDim(const std::vector<const Shard *> &shards) {
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
        coveredDim(old->second) != table.dim)
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
