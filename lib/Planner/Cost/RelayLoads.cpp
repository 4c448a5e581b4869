//===- RelayLoads.cpp - Bytes of the hierarchical all-to-all --------------===//

#include "RelayLoads.h"

#include "neuroshard/Artifact/CopyReaders.h"
#include "neuroshard/Model/LookupShares.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/Traffic.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

using namespace neuroshard;

namespace {

/// The part of the norms for a shard that stays in its group. `shards`: of its
/// table.
double insideNorms(const DeviceGroups &groups, const OwnedRows &shard,
                   std::span<const OwnedRows> shards) {
  double peers = 0, inside = 0;
  for (const OwnedRows &other : shards)
    if (other.device != shard.device && other.rows.overlaps(shard.rows) &&
        (!other.copies ||
         nearestCopy(groups, *other.copies, shard.device) == other.device)) {
      ++peers;
      inside += groups.sameGroup(other.device, shard.device);
    }
  return peers > 0 ? shard.normBytes * inside / peers : 0;
}

} // namespace

void neuroshard::shareInGroups(int groupSize, std::vector<OwnedRows> shards,
                               std::vector<DeviceLoad> &loads) {
  auto key = [&](const OwnedRows &shard) {
    return std::tuple(shard.table, shard.device / groupSize, shard.rows.begin,
                      shard.rows.end);
  };
  std::ranges::stable_sort(shards, {}, key);
  const OwnedRows *last = nullptr;
  for (const OwnedRows &shard : shards) {
    if (shard.copies)
      continue; // has readers of its own
    if (last && key(*last) == key(shard))
      loads[static_cast<size_t>(shard.device)].groupInputBytes -=
          shard.groupInputBytes;
    last = &shard;
  }
  DeviceGroups groups(
      static_cast<int32_t>(loads.size()),
      groupsOfSizes(std::vector<int64_t>(
          loads.size() / static_cast<size_t>(groupSize), groupSize)));
  for (auto first = shards.begin(); first != shards.end();) {
    auto last = std::find_if(first, shards.end(), [&](const OwnedRows &shard) {
      return shard.table != first->table;
    });
    for (auto shard = first; shard != last; ++shard)
      if (shard->normBytes > 0)
        loads[static_cast<size_t>(shard->device)].insideNormBytes +=
            insideNorms(groups, *shard, {first, last});
    first = last;
  }
}

TableRelay::TableRelay(const ShardingProblem &problem,
                       std::span<const int> features,
                       std::span<const Shard *const> shards)
    : groupSize(static_cast<size_t>(relayGroupSize(problem))),
      wire(problem.batch.wireType) {
  double ids = 0;
  const Table *table = nullptr;
  for (int index : features) {
    const Feature &feature = problem.features[static_cast<size_t>(index)];
    if (feature.pooling == Pooling::None)
      continue;
    auto batch = static_cast<double>(featureBatch(problem, feature));
    rows += batch;
    ids += batch * feature.presence * feature.meanPooling;
    table = &problem.tables[static_cast<size_t>(feature.table)];
  }
  if (rows == 0)
    return;
  std::map<size_t, std::vector<size_t>> ownersOfGroup;
  std::map<size_t, std::vector<Range>> colsOfGroup;
  for (const Shard *shard : shards) {
    if (shard->hasCopies())
      continue;
    auto device = static_cast<size_t>(shard->devices.front());
    ownersOfGroup[device / groupSize].push_back(owners.size());
    auto width = static_cast<double>(shard->width());
    owners.push_back(
        {device, width, 0,
         ids * lookupShareOfRows(*table, shard->rowBegin, shard->rowEnd) *
             width});
    colsOfGroup[device / groupSize].push_back({shard->colBegin, shard->colEnd});
  }
  for (const auto &[group, cols] : colsOfGroup) {
    Columns sums{group, 0, 0};
    for (const Segment &segment : cutColumns(cols)) {
      sums.count += static_cast<double>(segment.cols.size());
      ++sums.parts;
      for (int32_t part : segment.parts)
        ++owners[ownersOfGroup[group][static_cast<size_t>(part)]].parts;
    }
    groups.push_back(sums);
  }
}

double TableRelay::bytesOf(WireFormat format, double columns,
                           double parts) const {
  return rows * (columns * static_cast<double>(valueBytes(format)) +
                 parts * static_cast<double>(scaleBytes(format)));
}

double TableRelay::directBytes() const {
  double bytes = 0;
  for (const Columns &owner : owners)
    for (WireFormat format : {wire.results, wire.gradients})
      bytes += bytesOf(format, owner.count, 1);
  return bytes;
}

void TableRelay::add(std::vector<DeviceLoad> &loads,
                     std::vector<RelayLoad> &relays, double sign) const {
  auto bytes = [&](WireFormat format, const Columns &row, double parts) {
    return sign * bytesOf(format, row.count, parts);
  };
  for (const Columns &owner : owners) {
    DeviceLoad &load = loads[owner.index];
    RelayLoad &relay = relays[owner.index];
    load.forwardBytes -= bytes(wire.results, owner, 1);
    load.backwardBytes -= bytes(wire.gradients, owner, 1);
    relay.lookupValues += sign * owner.lookupValues;
    relay.forwardInside += bytes(wire.results, owner, owner.parts);
    relay.backwardInside += bytes(wire.gradients, owner, owner.parts);
  }
  // Each device of a group relays the samples of those with its index.
  for (const Columns &group : groups) {
    auto share = static_cast<double>(groupSize);
    for (size_t i = 0; i < groupSize; ++i) {
      RelayLoad &relay = relays[group.index * groupSize + i];
      relay.forwardAcross += bytes(wire.results, group, group.parts) / share;
      relay.backwardAcross += bytes(wire.gradients, group, group.parts) / share;
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
