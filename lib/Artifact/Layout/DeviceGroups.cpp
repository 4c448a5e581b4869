//===- DeviceGroups.cpp - Groups of devices with fast links ---------------===//

#include "neuroshard/Artifact/DeviceGroups.h"

#include <numeric>
#include <utility>

namespace neuroshard {

std::vector<std::vector<int32_t>> groupsOfSizes(std::vector<int64_t> sizes) {
  if (commonGroupSize(sizes) == 0)
    return {};
  std::vector<std::vector<int32_t>> groups;
  int32_t next = 0;
  for (int64_t size : sizes) {
    std::vector<int32_t> &group = groups.emplace_back(size);
    std::iota(group.begin(), group.end(), next);
    next += static_cast<int32_t>(size);
  }
  return groups;
}

DeviceGroups::DeviceGroups(const ExchangePlan &plan)
    : DeviceGroups(plan.numDevices, plan.groups) {}

DeviceGroups::DeviceGroups(int32_t numDevices,
                           std::vector<std::vector<int32_t>> given)
    : groups(std::move(given)), places(static_cast<size_t>(numDevices)) {
  if (groups.empty()) {
    groups.emplace_back(static_cast<size_t>(numDevices));
    std::iota(groups[0].begin(), groups[0].end(), 0);
  }
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].size(); ++i)
      places[static_cast<size_t>(groups[g][i])] = {static_cast<int32_t>(g),
                                                   static_cast<int32_t>(i)};
}

std::vector<int32_t> DeviceGroups::devicesWithIndex(int32_t index) const {
  std::vector<int32_t> devices;
  for (const std::vector<int32_t> &group : groups)
    devices.push_back(group[static_cast<size_t>(index)]);
  return devices;
}

} // namespace neuroshard
