//===- HierarchicalSizes.cpp - Sizes of a hierarchical all-to-all ---------===//

#include "neuroshard/Artifact/HierarchicalSizes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace neuroshard {

ScaledColumns::ScaledColumns(std::vector<int64_t> given, int64_t width,
                             WireFormat format)
    : begins(std::move(given)), scale(scaleWidth(format)),
      scaledWidth(width + scale * static_cast<int64_t>(begins.size())) {
  std::ranges::sort(begins);
}

int64_t ScaledColumns::at(int64_t column) const {
  auto before = std::ranges::lower_bound(begins, column) - begins.begin();
  return column + scale * before;
}

HierarchicalSizes::HierarchicalSizes(const ExchangeLayout &layout,
                                     const DeviceGroups &groups,
                                     const std::vector<int64_t> &batches,
                                     WireFormat format)
    : layout(layout), groups(groups), batches(batches), format(format) {
  for (size_t rank = 0; rank < batches.size(); ++rank) {
    auto index =
        static_cast<size_t>(groups.placeOf(static_cast<int64_t>(rank)).index);
    if (index >= batchOfIndex.size())
      batchOfIndex.resize(index + 1);
    batchOfIndex[index] += batches[rank];
  }
  const int64_t scale = scaleWidth(format);
  for (const StreamSet &owner : layout.owners)
    widthOfOwner.push_back(owner.relayedWidth);
  for (size_t group = 0; group < layout.relays.size(); ++group) {
    const RelayLayout &relay = layout.relays[group];
    widthOfRelays.push_back(relay.width +
                            scale * static_cast<int64_t>(relay.sums.size()));
    const std::vector<int32_t> &members =
        groups.group(static_cast<int32_t>(group));
    for (const RelaySum &sum : relay.sums)
      for (const RelaySource &source : sum.sources)
        widthOfOwner[static_cast<size_t>(
            members[static_cast<size_t>(source.index)])] += scale;
  }
}

int64_t HierarchicalSizes::ofSamples(int64_t owner, int64_t sampleRank) const {
  return batches[static_cast<size_t>(sampleRank)] *
         widthOfOwner[static_cast<size_t>(owner)];
}

int64_t HierarchicalSizes::ownerToRelay(int64_t owner, int64_t relay) const {
  if (!groups.sameGroup(owner, relay))
    return 0;
  return batchOfIndex[static_cast<size_t>(groups.placeOf(relay).index)] *
         widthOfOwner[static_cast<size_t>(owner)];
}

int64_t HierarchicalSizes::relayToSamples(int64_t relay,
                                          int64_t sampleRank) const {
  if (groups.placeOf(relay).index != groups.placeOf(sampleRank).index)
    return 0;
  return batches[static_cast<size_t>(sampleRank)] *
         widthOfRelays[static_cast<size_t>(groups.placeOf(relay).group)];
}

double HierarchicalSizes::relayBytes() const {
  auto sum = [](const std::vector<int64_t> &values) {
    return static_cast<double>(
        std::accumulate(values.begin(), values.end(), int64_t{0}));
  };
  return sum(widthOfRelays) * sum(batches) *
         static_cast<double>(valueBytes(format)) /
         static_cast<double>(groups.numDevices());
}

ScaledColumns HierarchicalSizes::columnsOfOwner(int64_t owner) const {
  GroupPlace place = groups.placeOf(owner);
  std::vector<int64_t> begins;
  for (const RelaySum &sum :
       layout.relays[static_cast<size_t>(place.group)].sums)
    for (const RelaySource &source : sum.sources)
      if (source.index == place.index)
        begins.push_back(source.column);
  return {std::move(begins),
          layout.owners[static_cast<size_t>(owner)].relayedWidth, format};
}

ScaledColumns HierarchicalSizes::columnsOfRelays(int64_t group) const {
  const RelayLayout &relay = layout.relays[static_cast<size_t>(group)];
  std::vector<int64_t> begins;
  for (const RelaySum &sum : relay.sums)
    begins.push_back(sum.column);
  return {std::move(begins), relay.width, format};
}

} // namespace neuroshard
