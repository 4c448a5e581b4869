//===- RelayLoads.cpp - Bytes of the hierarchical all-to-all --------------===//

#include "RelayLoads.h"

#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Traffic.h"

#include <algorithm>
#include <map>
#include <utility>

using namespace neuroshard;

int neuroshard::relayGroupSize(const Topology &topology) {
  if (topology.levels.empty())
    return 0;
  const std::vector<int> &sizes = topology.levels.back().groupSizes;
  return groupsOfSizes({sizes.begin(), sizes.end()}).empty() ? 0
                                                             : sizes.front();
}

int neuroshard::relayGroupSize(const ShardingProblem &problem) {
  return problem.target == Target::Native ? relayGroupSize(problem.topology)
                                          : 0;
}

bool neuroshard::anyRowSums(std::span<const DeviceLoad> loads) {
  return std::ranges::any_of(
      loads, [](const DeviceLoad &load) { return load.rowSumBytes > 0; });
}

void neuroshard::stageRowSums(size_t groupSize, std::vector<DeviceLoad> &loads,
                              std::vector<RelayLoad> &relays) {
  relays.resize(loads.size());
  for (size_t i = 0; i < loads.size(); ++i) {
    double bytes = std::exchange(loads[i].rowSumBytes, 0);
    loads[i].backwardBytes -= bytes;
    relays[i].backwardInside += bytes;
    relays[i].backwardAcross += bytes / static_cast<double>(groupSize);
  }
}

TableRelay::TableRelay(const ShardingProblem &problem,
                       std::span<const int> features,
                       std::span<const Shard *const> shards)
    : groupSize(static_cast<size_t>(relayGroupSize(problem))) {
  double rows = 0;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    if (feature.pooling != Pooling::None)
      rows += static_cast<double>(featureBatch(problem, feature));
  }
  if (rows == 0)
    return;
  const WireType &wire = problem.batch.wireType;
  forwardBytesPerColumn =
      rows * static_cast<double>(elementBytes(wire.results));
  backwardBytesPerColumn =
      rows * static_cast<double>(elementBytes(wire.gradients));
  std::map<size_t, std::vector<Range>> colsOfGroup;
  for (const Shard *shard : shards) {
    if (shard->replicated())
      continue;
    auto device = static_cast<size_t>(shard->devices.front());
    owners.push_back({device, static_cast<double>(shard->width())});
    colsOfGroup[device / groupSize].push_back({shard->colBegin, shard->colEnd});
  }
  for (const auto &[group, cols] : colsOfGroup) {
    int64_t sums = 0;
    for (const Segment &segment : cutColumns(cols))
      sums += segment.cols.size();
    groups.push_back({group, static_cast<double>(sums)});
  }
}

double TableRelay::directBytes() const {
  double columns = 0;
  for (const Columns &owner : owners)
    columns += owner.count;
  return columns * (forwardBytesPerColumn + backwardBytesPerColumn);
}

void TableRelay::add(std::vector<DeviceLoad> &loads,
                     std::vector<RelayLoad> &relays, double sign) const {
  for (const Columns &owner : owners) {
    double forward = sign * owner.count * forwardBytesPerColumn;
    double backward = sign * owner.count * backwardBytesPerColumn;
    loads[owner.index].forwardBytes -= forward;
    loads[owner.index].backwardBytes -= backward;
    relays[owner.index].forwardInside += forward;
    relays[owner.index].backwardInside += backward;
  }
  // Each device of a group relays the samples of those with its index.
  for (const Columns &group : groups) {
    double share = sign * group.count / static_cast<double>(groupSize);
    for (size_t i = 0; i < groupSize; ++i) {
      RelayLoad &relay = relays[group.index * groupSize + i];
      relay.forwardAcross += share * forwardBytesPerColumn;
      relay.backwardAcross += share * backwardBytesPerColumn;
    }
  }
}

std::vector<std::optional<TableRelay>>
neuroshard::tableRelays(const ShardingProblem &problem,
                        std::span<const Shard> shards) {
  std::vector<std::optional<TableRelay>> relays(problem.tables.size());
  if (relayGroupSize(problem) == 0)
    return relays;
  ExchangePlan plan = exchangePlan(problem, shards);
  std::vector<bool> relayed = relayedTables(plan);
  std::vector<std::vector<const Shard *>> shardsOfTable(relayed.size());
  for (size_t i = 0; i < shards.size(); ++i)
    shardsOfTable[static_cast<size_t>(plan.shards[i].table)].push_back(
        &shards[i]);
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  for (size_t table = 0; table < relayed.size(); ++table)
    if (relayed[table])
      relays[table].emplace(problem, features[table], shardsOfTable[table]);
  return relays;
}

std::vector<RelayLoad>
neuroshard::relayLoads(std::span<const std::optional<TableRelay>> tables,
                       std::vector<DeviceLoad> &loads) {
  std::vector<RelayLoad> relays;
  for (const std::optional<TableRelay> &table : tables) {
    if (!table || table->isEmpty())
      continue;
    relays.resize(loads.size());
    table->add(loads, relays, 1);
  }
  return relays;
}

std::vector<RelayLoad> neuroshard::relayLoads(const ShardingProblem &problem,
                                              std::span<const Shard> shards,
                                              std::vector<DeviceLoad> &loads) {
  return relayLoads(tableRelays(problem, shards), loads);
}
