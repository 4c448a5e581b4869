//===- RenameDevices.cpp - Numbers of equal devices that move least -------===//

#include "RenameDevices.h"

#include "Migration.h"
#include "neuroshard/Model/StoredBytes.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace neuroshard;

namespace {

/// The bytes that stay if a device of the new plan takes an old device's
/// number.
struct Match {
  double bytes = 0;
  int device = 0;
  int name = 0;
};

/// New numbers of some devices. Devices of a group stay in one group, on every
/// level.
class Renaming {
public:
  explicit Renaming(const Topology &topology) : topology(topology) {
    for (const TopologyLevel &level : topology.levels) {
      groups.push_back(groupOfDevices(level));
      groupNames.emplace_back(level.groupSizes.size(), -1);
      groupTaken.emplace_back(level.groupSizes.size(), -1);
    }
    names.resize(topology.devices.size(), -1);
    taken.resize(topology.devices.size(), false);
  }

  /// Gives a device a number if both devices are equal and free, and so are
  /// their groups; false otherwise.
  bool give(int device, int name) {
    size_t from = static_cast<size_t>(device), to = static_cast<size_t>(name);
    if (names[from] >= 0 || taken[to] || !equal(from, to))
      return false;
    for (size_t level = 0; level < groups.size(); ++level)
      if (!mayMap(level, groups[level][from], groups[level][to]))
        return false;
    for (size_t level = 0; level < groups.size(); ++level) {
      size_t a = static_cast<size_t>(groups[level][from]);
      size_t b = static_cast<size_t>(groups[level][to]);
      groupNames[level][a] = groups[level][to];
      groupTaken[level][b] = groups[level][from];
    }
    names[from] = name;
    taken[to] = true;
    return true;
  }

  /// Numbers the remaining devices; false when that is impossible.
  bool complete() {
    for (int device = 0; device < topology.deviceCount(); ++device) {
      bool named = names[static_cast<size_t>(device)] >= 0;
      for (int name = 0; !named && name < topology.deviceCount(); ++name)
        named = give(device, name);
      if (!named)
        return false;
    }
    return true;
  }

  int nameOf(int device) const { return names[static_cast<size_t>(device)]; }

private:
  bool equal(size_t a, size_t b) const {
    const Device &x = topology.devices[a], &y = topology.devices[b];
    return x.deviceClass == y.deviceClass && x.memoryBytes == y.memoryBytes &&
           x.reserves == y.reserves &&
           topology.hosts[static_cast<size_t>(x.host)] ==
               topology.hosts[static_cast<size_t>(y.host)];
  }

  bool mayMap(size_t level, int from, int to) const {
    size_t a = static_cast<size_t>(from), b = static_cast<size_t>(to);
    if (groupNames[level][a] >= 0)
      return groupNames[level][a] == to;
    return groupTaken[level][b] < 0 && topology.levels[level].groupSizes[a] ==
                                           topology.levels[level].groupSizes[b];
  }

  const Topology &topology;
  std::vector<std::vector<int>> groups;
  /// Per level: new group of each group, and the reverse.
  std::vector<std::vector<int>> groupNames, groupTaken;
  std::vector<int> names;
  std::vector<bool> taken;
};

} // namespace

static std::vector<Match> matches(const ShardingProblem &problem,
                                  const ShardingPlan &previous,
                                  const ShardingPlan &plan) {
  std::map<std::pair<int, int>, double> bytes;
  ShardsOfTable before = shardsByTable(previous), after = shardsByTable(plan);
  for (const Table &table : problem.tables) {
    auto old = before.find(table.name);
    auto now = after.find(table.name);
    if (old == before.end() || now == after.end())
      continue;
    for (const Shard *shard : now->second)
      for (const Shard *source : old->second) {
        Overlap shared = overlapOf(*shard, *source);
        if (shared.rows == 0 || shard->hasCopies() || source->hasCopies() ||
            source->devices.front() >= problem.topology.deviceCount())
          continue;
        bytes[{shard->devices.front(), source->devices.front()}] +=
            storedBytes(table, shared.rows, shared.columns, shard->width());
      }
  }
  std::vector<Match> result;
  for (const auto &[pair, count] : bytes)
    result.push_back({count, pair.first, pair.second});
  std::sort(result.begin(), result.end(), [](const Match &a, const Match &b) {
    return std::tuple(-a.bytes, a.device, a.name) <
           std::tuple(-b.bytes, b.device, b.name);
  });
  return result;
}

std::vector<int> neuroshard::deviceNames(const ShardingProblem &problem,
                                         const ShardingPlan &previous,
                                         const ShardingPlan &plan) {
  std::vector<int> names(problem.topology.devices.size());
  std::iota(names.begin(), names.end(), 0);
  const Constraints &constraints = problem.constraints;
  if (!constraints.pins.empty() || !constraints.forbids.empty() ||
      !constraints.fixedShards.empty())
    return names;
  Renaming renaming(problem.topology);
  for (const Match &match : matches(problem, previous, plan))
    renaming.give(match.device, match.name);
  // Unequal devices in equal groups may leave one without a number.
  if (renaming.complete())
    for (int &name : names)
      name = renaming.nameOf(name);
  return names;
}
