//===- TopologyLevels.cpp - Groups of devices, level by level -------------===//

#include "neuroshard/Model/TopologyLevels.h"

#include <algorithm>
#include <numeric>

using namespace neuroshard;

namespace {

/// Ends of the groups, as device indices.
std::vector<int64_t> groupEnds(const TopologyLevel &level) {
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (int size : level.groupSizes)
    ends.push_back(end += size);
  return ends;
}

} // namespace

std::vector<int> neuroshard::groupOfDevices(const TopologyLevel &level) {
  std::vector<int> groups;
  for (size_t group = 0; group < level.groupSizes.size(); ++group)
    groups.insert(groups.end(), std::max(0, level.groupSizes[group]),
                  static_cast<int>(group));
  return groups;
}

std::string neuroshard::checkGroups(std::span<const TopologyLevel> levels,
                                    size_t level, int64_t devices) {
  const std::vector<int> &sizes = levels[level].groupSizes;
  int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (sum != devices)
    return "group sizes must add up to the " + std::to_string(devices) +
           " devices, got: " + std::to_string(sum);
  if (level == 0)
    return sizes.size() == 1 ? ""
                             : "the outermost level must be one group of all "
                               "devices, got: " +
                                   std::to_string(sizes.size()) + " groups";
  std::vector<int64_t> inner = groupEnds(levels[level]);
  std::vector<int64_t> outer = groupEnds(levels[level - 1]);
  if (!std::includes(inner.begin(), inner.end(), outer.begin(), outer.end()))
    return "each group must lie inside one group of the level before";
  return "";
}
