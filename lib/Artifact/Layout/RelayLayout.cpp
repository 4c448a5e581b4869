//===- RelayLayout.cpp - Layout of the hierarchical all-to-all ------------===//
//
// A table with several row shards inside one group would send one partial sum
// per owner over the slow links between groups. A relay in the group adds them
// up and sends one. Each device of a group relays a part of the samples, so
// that what one owner has leaves over the links of all.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>
#include <map>

namespace neuroshard {
namespace {

using Parts = std::vector<const PartialColumns *>;

/// The parts of a result that the devices of each group have, in their order.
std::map<int32_t, Parts> partsByGroup(const DeviceGroups &groups,
                                      const ResultLayout &result) {
  std::map<int32_t, Parts> parts;
  for (const PartialColumns &part : result.parts)
    parts[groups.placeOf(part.device).group].push_back(&part);
  return parts;
}

/// True if two devices of one group have partial sums of the same columns.
bool addsUpInAGroup(const DeviceGroups &groups,
                    const std::vector<const ShardSpec *> &shards) {
  for (const ShardSpec *a : shards)
    for (const ShardSpec *b : shards)
      if (a->devices.front() < b->devices.front() &&
          a->cols.overlaps(b->cols) &&
          groups.sameGroup(a->devices.front(), b->devices.front()))
        return true;
  return false;
}

bool isRelayed(const ExchangeLayout &layout, const ResultLayout &result) {
  if (result.parts.empty())
    return false;
  const PartialColumns &part = result.parts.front();
  return layout.owners[part.device].entries[part.entry].relayed;
}

/// Adds the sums of what the devices of a group have of one result.
void addSums(const DeviceGroups &groups, int32_t group, const Parts &parts,
             ExchangeLayout &layout, ResultLayout &result) {
  std::vector<Range> cols;
  for (const PartialColumns *part : parts)
    cols.push_back(part->cols);
  RelayLayout &relay = layout.relays[group];
  for (const Segment &segment : cutColumns(cols)) {
    RelaySum sum{relay.width, segment.cols.size(), {}};
    for (int32_t i : segment.parts) {
      const PartialColumns &part = *parts[i];
      const EntryLayout &entry = layout.owners[part.device].entries[part.entry];
      sum.sources.push_back(
          {groups.placeOf(part.device).index,
           entry.pooledColumn + segment.cols.begin - part.cols.begin});
    }
    result.relayed.push_back({group, segment.cols, relay.width});
    relay.width += sum.size;
    relay.sums.push_back(std::move(sum));
  }
}

} // namespace

std::vector<bool> relayedTables(const ExchangePlan &plan) {
  std::vector<bool> relayed(plan.tables.size());
  DeviceGroups groups(plan);
  if (groups.numGroups() < 2)
    return relayed;
  std::vector<std::vector<const ShardSpec *>> shardsOfTable(relayed.size());
  for (const ShardSpec &shard : plan.shards)
    shardsOfTable[static_cast<size_t>(shard.table)].push_back(&shard);
  for (size_t table = 0; table < relayed.size(); ++table) {
    const std::vector<const ShardSpec *> &shards = shardsOfTable[table];
    // Relays serve all groups, copies some ranks.
    if (shards.empty() || std::ranges::any_of(shards, &ShardSpec::hasCopies))
      continue;
    Route route = shards.front()->route;
    relayed[table] = route == Route::Relay ||
                     (route == Route::Auto && addsUpInAGroup(groups, shards));
  }
  return relayed;
}

void markRelayed(const DeviceGroups &groups, const std::vector<bool> &relayed,
                 const ExchangeSpec &spec, ExchangeLayout &layout) {
  for (size_t k = 0; k < layout.results.size(); ++k) {
    const ExchangeLookup &lookup = spec.lookups[k];
    if (!lookup.pooled() || !relayed[static_cast<size_t>(lookup.table)])
      continue;
    for (const PartialColumns &part : layout.results[k].parts)
      layout.owners[part.device].entries[part.entry].relayed = true;
    layout.relays.resize(static_cast<size_t>(groups.numGroups()));
  }
}

void addRelays(const DeviceGroups &groups, ExchangeLayout &layout) {
  for (ResultLayout &result : layout.results) {
    if (!isRelayed(layout, result))
      continue;
    for (const auto &[group, parts] : partsByGroup(groups, result))
      addSums(groups, group, parts, layout, result);
    std::vector<Range> cols;
    for (const RelayedColumns &part : result.relayed)
      cols.push_back(part.cols);
    result.segments = cutColumns(cols);
  }
}

void addGroupIds(const DeviceGroups &groups, ExchangeLayout &layout) {
  if (groups.numGroups() < 2 || !layout.hasRemote)
    return;
  for (int32_t group = 0; group < groups.numGroups(); ++group) {
    std::map<int32_t, StreamLayout> ofBucket;
    for (int32_t device : groups.group(group))
      for (const StreamLayout &stream :
           layout.owners[static_cast<size_t>(device)].streams) {
        auto [found, isNew] = ofBucket.emplace(stream.bucket, stream);
        if (!isNew)
          found->second.readers.add(stream.readers);
      }
    StreamSet &set = layout.groupIds.emplace_back();
    for (const auto &[bucket, stream] : ofBucket)
      set.streams.push_back(stream);
  }
}

std::vector<size_t> streamsInGroup(const StreamSet &group,
                                   const StreamSet &device) {
  std::vector<size_t> numbers;
  for (const StreamLayout &stream : device.streams) {
    auto found = std::ranges::lower_bound(group.streams, stream.bucket, {},
                                          &StreamLayout::bucket);
    numbers.push_back(static_cast<size_t>(found - group.streams.begin()));
  }
  return numbers;
}

} // namespace neuroshard
