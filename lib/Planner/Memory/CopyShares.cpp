//===- CopyShares.cpp - What each copy of a shard serves ------------------===//

#include "CopyShares.h"

#include "neuroshard/Artifact/CopyReaders.h"

#include <algorithm>

using namespace neuroshard;

static DeviceGroups groupsOf(const ShardingProblem &problem) {
  ExchangePlan plan;
  plan.numDevices = problem.topology.deviceCount();
  if (!problem.topology.levels.empty()) {
    const std::vector<int> &sizes = problem.topology.levels.back().groupSizes;
    plan.groups = groupsOfSizes({sizes.begin(), sizes.end()});
  }
  return DeviceGroups(plan);
}

std::vector<CopyShare> neuroshard::copyShares(const ShardingProblem &problem,
                                              const Shard &shard) {
  DeviceGroups groups = groupsOf(problem);
  bool hasGroups = groups.numGroups() > 1;
  std::vector<int32_t> devices(shard.devices.begin(), shard.devices.end());
  std::ranges::sort(devices);
  std::vector<CopyShare> shares;
  for (int32_t device : devices) {
    double readers = 0, inside = 0, near = 0;
    for (int32_t rank = 0; rank < groups.numDevices(); ++rank)
      if (nearestCopy(groups, devices, rank) == device) {
        ++readers;
        inside += hasGroups && groups.sameGroup(rank, device);
      }
    for (int32_t other : devices)
      near += hasGroups && other != device && groups.sameGroup(other, device);
    auto others = static_cast<double>(devices.size() - 1);
    shares.push_back({readers / groups.numDevices(), inside / readers,
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
