//===- ExchangeCounts.cpp - Sizes of one step's messages ------------------===//

#include "ExchangeCounts.h"

#include "neuroshard/Artifact/CopyReaders.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <algorithm>
#include <set>

namespace neuroshard {

/// Runs of devices in groups by what they read: they are cut where neighbours
/// read other copies of a shard.
static std::vector<DeviceRange> readAlike(const ExchangePlan &plan,
                                          std::vector<DeviceRange> runs) {
  std::set<std::vector<int32_t>> copies;
  for (const ShardSpec &shard : plan.shards)
    if (plan.isCopied(shard))
      copies.insert(shard.devices);
  if (copies.empty())
    return runs;
  DeviceGroups groups(plan);
  std::vector<DeviceRange> cut;
  for (const DeviceRange &run : runs)
    for (size_t rank = run.begin; rank < run.end; ++rank) {
      auto isAlike = [&](const std::vector<int32_t> &devices) {
        auto own = static_cast<int32_t>(rank);
        return nearestCopy(groups, devices, own) ==
               nearestCopy(groups, devices, own - 1);
      };
      if (rank == run.begin || !std::ranges::all_of(copies, isAlike))
        cut.push_back({rank, rank});
      cut.back().end = rank + 1;
    }
  return cut;
}

ExchangeCounts::ExchangeCounts(const ExchangePlan &plan, size_t exchange,
                               const ExchangeLoad &load)
    : spec(plan.exchanges[exchange]), load(load),
      packedIdBytes(plan.packedIdBytes(spec)), count(load.batches.size()),
      runs(readAlike(plan, load.alike())) {}

int64_t ExchangeCounts::idsOfAll(const StreamLayout &stream) const {
  int64_t ids = 0;
  for (const DeviceRange &ranks : runs)
    ids += idsOf(stream, ranks.begin) * static_cast<int64_t>(ranks.size());
  return ids;
}

int64_t ExchangeCounts::idsOfReaders(const StreamSet &set,
                                     const EntryLayout &entry) const {
  const StreamLayout &stream = set.streams[static_cast<size_t>(entry.stream)];
  int64_t ids = 0;
  for (const DeviceRange &ranks : runs)
    if (entry.readers.contains(static_cast<int64_t>(ranks.begin)))
      ids += idsOf(stream, ranks.begin) * static_cast<int64_t>(ranks.size());
  return ids;
}

int64_t ExchangeCounts::payloadBytes(const StreamSet &set, size_t rank) const {
  std::vector<int64_t> ids;
  for (const StreamLayout &stream : set.streams)
    ids.push_back(idsOf(stream, rank));
  return IdPayload(set, static_cast<int64_t>(rank), load.batches[rank],
                   packedIdBytes, ids)
      .bytes();
}

Block ExchangeCounts::blockOf(const StreamSet &set, size_t rank) const {
  return makeBlock(
      set, static_cast<int64_t>(rank), load.batches[rank],
      [&](size_t stream) { return idsOf(set.streams[stream], rank); });
}

ReplicaUpdate
ExchangeCounts::replicaUpdate(const ExchangePlan &plan, size_t exchange,
                              const ExchangeLayout &layout) const {
  const StreamSet &local = layout.locals.front();
  int64_t bags = 0;
  for (int64_t batch : load.batches)
    bags += batch;
  std::vector<int64_t> ids;
  for (const StreamLayout &stream : local.streams)
    ids.push_back(idsOfAll(stream));
  return makeReplicaUpdate(plan, exchange, local, bags, ids);
}

int64_t ExchangeCounts::directBytes(const StreamSet &set, size_t rank,
                                    WireFormat format) const {
  Block block = makeDirectBlock(
      set, static_cast<int64_t>(rank), load.batches[rank], format,
      [&](size_t stream) { return idsOf(set.streams[stream], rank); });
  return block.size * valueBytes(format);
}

} // namespace neuroshard
