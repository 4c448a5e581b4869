//===- CopyReaders.cpp - Which copy of a shard each rank reads ------------===//

#include "neuroshard/Artifact/CopyReaders.h"

#include <map>

namespace neuroshard {

int32_t nearestCopy(const DeviceGroups &groups,
                    const std::vector<int32_t> &devices, int32_t rank) {
  if (std::ranges::binary_search(devices, rank))
    return rank;
  std::vector<int32_t> near;
  for (int32_t device : devices)
    if (groups.sameGroup(device, rank))
      near.push_back(device);
  GroupPlace place = groups.placeOf(rank);
  auto share = [](const std::vector<int32_t> &from, int64_t number,
                  int64_t all) {
    return from[static_cast<size_t>(number * static_cast<int64_t>(from.size()) /
                                    all)];
  };
  if (near.empty())
    return share(devices, rank, groups.numDevices());
  return share(near, place.index,
               static_cast<int64_t>(groups.group(place.group).size()));
}

std::vector<Readers> readersOfCopies(const DeviceGroups &groups,
                                     const std::vector<int32_t> &devices) {
  std::map<int32_t, std::vector<int32_t>> ranks;
  for (int32_t rank = 0; rank < groups.numDevices(); ++rank)
    ranks[nearestCopy(groups, devices, rank)].push_back(rank);
  std::vector<Readers> readers;
  for (int32_t device : devices)
    readers.emplace_back(std::move(ranks[device]));
  return readers;
}

namespace {

PartialColumns &partOf(ExchangeLayout &layout, const EntryLayout &entry,
                       const Range &rows) {
  std::vector<PartialColumns> &parts =
      layout.results[static_cast<size_t>(entry.lookup)].parts;
  return *std::ranges::find_if(parts, [&](const PartialColumns &part) {
    return part.rows == rows && part.cols == entry.cols;
  });
}

void setReadersOfStreams(StreamSet &set) {
  std::vector<bool> isSeen(set.streams.size());
  for (const EntryLayout &entry : set.entries) {
    auto stream = static_cast<size_t>(entry.stream);
    if (isSeen[stream])
      set.streams[stream].readers.add(entry.readers);
    else
      set.streams[stream].readers = entry.readers;
    isSeen[stream] = true;
  }
}

} // namespace

void Readers::add(const Readers &other) {
  if (areAll() || other.areAll()) {
    ranks.clear();
    return;
  }
  std::vector<int32_t> both;
  std::ranges::set_union(ranks, other.ranks, std::back_inserter(both));
  ranks = std::move(both);
}

EntryPlace placeFor(const ExchangeLayout &layout, const PartialColumns &part,
                    int64_t rank) {
  for (const EntryPlace &copy : part.copies)
    if (layout.owners[static_cast<size_t>(copy.device)]
            .entries[static_cast<size_t>(copy.entry)]
            .readers.contains(rank))
      return copy;
  return {part.device, part.entry};
}

void addReaders(const ExchangePlan &plan, const DeviceGroups &groups,
                ExchangeLayout &layout) {
  std::map<int32_t, std::vector<Readers>> ofShard;
  for (size_t device = 0; device < layout.owners.size(); ++device) {
    StreamSet &set = layout.owners[device];
    auto rank = static_cast<int32_t>(device);
    for (size_t e = 0; e < set.entries.size(); ++e) {
      EntryLayout &entry = set.entries[e];
      int32_t number =
          plan.bindings[device].slots[static_cast<size_t>(entry.slot)];
      const ShardSpec &shard = plan.shards[static_cast<size_t>(number)];
      if (!plan.isCopied(shard))
        continue;
      auto [readers, isNew] = ofShard.try_emplace(number);
      if (isNew)
        readers->second = readersOfCopies(groups, shard.devices);
      auto copy =
          std::ranges::find(shard.devices, rank) - shard.devices.begin();
      entry.readers = readers->second[static_cast<size_t>(copy)];
      partOf(layout, entry, shard.rows)
          .copies.push_back({rank, static_cast<int32_t>(e)});
    }
    setReadersOfStreams(set);
  }
}

} // namespace neuroshard
