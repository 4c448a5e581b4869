//===- DeviceGroups.cpp - Groups of devices with fast links ---------------===//

#include "neuroshard/Artifact/DeviceGroups.h"

#include <numeric>

namespace neuroshard {

DeviceGroups::DeviceGroups(const Manifest &manifest)
    : groups(manifest.groups),
      places(static_cast<size_t>(manifest.numDevices)) {
  if (groups.empty()) {
    groups.emplace_back(static_cast<size_t>(manifest.numDevices));
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
