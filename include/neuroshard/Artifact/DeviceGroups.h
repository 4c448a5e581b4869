//===- DeviceGroups.h - Groups of devices with fast links ------*- C++ -*-===//
//
// Where each device is among groups of one size, such as the nodes of a
// cluster: the hierarchical all-to-all adds partial sums up inside a group
// before they cross the slow links between groups.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_DEVICEGROUPS_H
#define NEUROSHARD_ARTIFACT_DEVICEGROUPS_H

#include "neuroshard/Artifact/ExchangePlan.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace neuroshard {

/// The size of the groups of a topology's innermost level if there are several
/// of one size above 1, else 0: only then has every device a counterpart in
/// every other group.
template <typename Int> int64_t commonGroupSize(const std::vector<Int> &sizes) {
  bool differ =
      std::ranges::adjacent_find(sizes, std::not_equal_to<>()) != sizes.end();
  return sizes.size() < 2 || sizes.front() < 2 || differ ? 0 : sizes.front();
}

/// Devices by group; none without a common size.
std::vector<std::vector<int32_t>> groupsOfSizes(std::vector<int64_t> sizes);

struct GroupPlace {
  int32_t group = 0;
  int32_t index = 0; ///< within the group.
};

class DeviceGroups {
public:
  explicit DeviceGroups(const ExchangePlan &plan);
  /// No groups: one of all devices.
  DeviceGroups(int32_t numDevices, std::vector<std::vector<int32_t>> groups);

  int32_t numDevices() const { return static_cast<int32_t>(places.size()); }
  int32_t numGroups() const { return static_cast<int32_t>(groups.size()); }
  const std::vector<int32_t> &group(int32_t number) const {
    return groups[static_cast<size_t>(number)];
  }
  const GroupPlace &placeOf(int64_t device) const {
    return places[static_cast<size_t>(device)];
  }
  bool sameGroup(int64_t a, int64_t b) const {
    return placeOf(a).group == placeOf(b).group;
  }
  /// The device with this index of each group.
  std::vector<int32_t> devicesWithIndex(int32_t index) const;

private:
  std::vector<std::vector<int32_t>> groups; ///< at least one.
  std::vector<GroupPlace> places;           ///< per device.
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_DEVICEGROUPS_H
