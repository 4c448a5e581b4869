//===- HierarchicalSizes.h - Sizes of a hierarchical all-to-all -*- C++ -*-===//
//
// Owners send partial sums to the relay in their group that has the same index
// in the group as the rank of the sample; the relay adds them up and sends one
// row on. All sizes follow from the layout and the batches of all ranks, which
// the exchange of ids has told everyone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H
#define NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H

#include "neuroshard/Artifact/DeviceGroups.h"
#include "neuroshard/Artifact/ExchangeLayout.h"

#include <cstdint>
#include <vector>

namespace neuroshard {

/// Numbers of values in the messages of one exchange with relays. All arguments
/// must outlive it.
class HierarchicalSizes {
public:
  HierarchicalSizes(const ExchangeLayout &layout, const DeviceGroups &groups,
                    const std::vector<int64_t> &batches)
      : layout(layout), groups(groups), batches(batches) {
    for (size_t rank = 0; rank < batches.size(); ++rank) {
      auto index =
          static_cast<size_t>(groups.placeOf(static_cast<int64_t>(rank)).index);
      if (index >= batchOfIndex.size())
        batchOfIndex.resize(index + 1);
      batchOfIndex[index] += batches[rank];
    }
  }

  /// From an owner to its relay, of one rank's samples.
  int64_t ofSamples(int64_t owner, int64_t sampleRank) const;
  /// From an owner to a relay, of the samples of all ranks that it serves; 0
  /// outside the owner's group.
  int64_t ownerToRelay(int64_t owner, int64_t relay) const;
  /// From a relay to the rank of the samples; 0 if it does not serve that.
  int64_t relayToSamples(int64_t relay, int64_t sampleRank) const;

protected:
  const ExchangeLayout &layout;
  const DeviceGroups &groups;
  const std::vector<int64_t> &batches; ///< per rank.
  /// Per index in a group: samples of all ranks that its relays serve.
  std::vector<int64_t> batchOfIndex;
};

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_HIERARCHICALSIZES_H
