//===- GroupModel.cpp - Groups of devices as devices of their own ---------===//

#include "GroupModel.h"

#include <algorithm>
#include <deque>

using namespace neuroshard;

/// What one device of a group has of a shard that the group shares evenly; of a
/// replica it has a copy, and its share of the batch.
static ShardWork shareOf(const ShardWork &shard, int groupSize) {
  ShardWork share = shard;
  auto count = static_cast<double>(groupSize);
  share.lookups /= count;
  share.outputRows /= count;
  share.pooling /= count;
  if (shard.replicated) {
    // Row sums are of all rows; what is gathered is of all samples.
    if (shard.rowSumBytes > 0) {
      share.updateLookups -= shard.lookups - share.lookups;
      share.updateGradientRows -= shard.outputRows - share.outputRows;
    }
    share.uniqueRows = std::min(share.uniqueRows, share.lookups);
    return share;
  }
  share.rows = std::max<int64_t>(1, shard.rows / groupSize);
  share.uniqueRows /= count;
  share.updateLookups /= count;
  share.updateGradientRows /= count;
  share.updateUniqueRows /= count;
  share.hostRows /= count;
  share.hostUpdateRows /= count;
  return share;
}

void GroupModel::ShareEmbedding::embed(const ShardWork &shard,
                                       const DeviceClass &deviceClass,
                                       std::span<double> out) const {
  embedding->embed(shareOf(shard, groupSize), deviceClass, out);
}

void GroupModel::computeMs(std::span<const ShardSet> sets,
                           std::span<ComputeMs> out) const {
  std::deque<ShardWork> works;
  std::vector<ShardSet> shares;
  for (const ShardSet &set : sets) {
    ShardSet &share = shares.emplace_back();
    share.deviceClass = set.deviceClass;
    for (const ShardWork *shard : set.shards)
      share.shards.push_back(&works.emplace_back(shareOf(*shard, groupSize)));
  }
  model.computeMs(shares, out);
}

std::vector<double> GroupModel::forDevices(std::span<const double> groups,
                                           double share) const {
  std::vector<double> devices;
  for (double value : groups)
    devices.insert(devices.end(), static_cast<size_t>(groupSize),
                   value * share);
  return devices;
}

std::vector<double>
GroupModel::forGroups(const std::vector<double> &devices) const {
  std::vector<double> groups;
  auto size = static_cast<ptrdiff_t>(groupSize);
  for (auto first = devices.begin(); first != devices.end(); first += size)
    groups.push_back(*std::max_element(first, first + size));
  return groups;
}

Traffic GroupModel::ofDevices(const Traffic &groups) const {
  double share = 1.0 / groupSize;
  return {&topology, forDevices(groups.dims, share),
          forDevices(groups.bytesOut, share),
          forDevices(groups.bytesIn, share)};
}

std::vector<double>
GroupModel::communicationMs(const Traffic &traffic,
                            std::span<const double> startSkewsMs,
                            Direction direction) const {
  return forGroups(model.communicationMs(
      ofDevices(traffic), forDevices(startSkewsMs, 1), direction));
}

std::vector<double> GroupModel::arrivalsMs(const Traffic &traffic,
                                           std::span<const double> startsMs,
                                           double evenMs,
                                           Direction direction) const {
  return forGroups(model.arrivalsMs(ofDevices(traffic), forDevices(startsMs, 1),
                                    evenMs, direction));
}
