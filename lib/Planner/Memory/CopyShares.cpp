//===- CopyShares.cpp - Parts of the batch that copies of a shard serve ---===//

#include "CopyShares.h"

#include "neuroshard/Artifact/CopyReaders.h"

#include <algorithm>

using namespace neuroshard;

std::vector<std::vector<int32_t>>
neuroshard::innermostGroups(const Topology &topology) {
  if (topology.levels.empty())
    return {};
  const std::vector<int> &sizes = topology.levels.back().groupSizes;
  return groupsOfSizes({sizes.begin(), sizes.end()});
}

std::vector<CopyShare> neuroshard::copyShares(const ShardingProblem &problem,
                                              const Shard &shard) {
  DeviceGroups groups(problem.topology.deviceCount(),
                      innermostGroups(problem.topology));
  bool hasGroups = groups.numGroups() > 1;
  std::vector<int32_t> devices(shard.devices.begin(), shard.devices.end());
  std::ranges::sort(devices);
  std::vector<Readers> readers = readersOfCopies(groups, devices);
  std::vector<CopyShare> shares;
  for (size_t copy = 0; copy < devices.size(); ++copy) {
    auto countInside = [&](const std::vector<int32_t> &ranks) {
      return hasGroups ? std::ranges::count_if(ranks,
                                               [&](int32_t rank) {
                                                 return groups.sameGroup(
                                                     rank, devices[copy]);
                                               })
                       : 0;
    };
    auto all = static_cast<double>(readers[copy].list().size());
    auto inside = static_cast<double>(countInside(readers[copy].list()));
    auto others = static_cast<double>(devices.size() - 1);
    auto near = static_cast<double>(countInside(devices) - hasGroups);
    shares.push_back({all / groups.numDevices(), all > 1, inside / all,
                      others > 0 ? near / others : 0,
                      static_cast<int>(devices.size())});
  }
  return shares;
}

double neuroshard::largestCopyShare(const ShardingProblem &problem,
                                    const Shard &shard) {
  double most = shard.hasCopies() ? 0 : 1;
  if (shard.hasCopies())
    for (const CopyShare &share : copyShares(problem, shard))
      most = std::max(most, share.batch);
  return most;
}
