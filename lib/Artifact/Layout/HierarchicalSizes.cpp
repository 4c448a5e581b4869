//===- HierarchicalSizes.cpp - Sizes of a hierarchical all-to-all ---------===//

#include "neuroshard/Artifact/HierarchicalSizes.h"

namespace neuroshard {

int64_t HierarchicalSizes::ofSamples(int64_t owner, int64_t sampleRank) const {
  return batches[static_cast<size_t>(sampleRank)] *
         layout.owners[static_cast<size_t>(owner)].relayedWidth;
}

int64_t HierarchicalSizes::ownerToRelay(int64_t owner, int64_t relay) const {
  if (!groups.sameGroup(owner, relay))
    return 0;
  return batchOfIndex[static_cast<size_t>(groups.placeOf(relay).index)] *
         layout.owners[static_cast<size_t>(owner)].relayedWidth;
}

int64_t HierarchicalSizes::relayToSamples(int64_t relay,
                                          int64_t sampleRank) const {
  if (groups.placeOf(relay).index != groups.placeOf(sampleRank).index)
    return 0;
  return batches[static_cast<size_t>(sampleRank)] *
         layout.relays[static_cast<size_t>(groups.placeOf(relay).group)].width;
}

} // namespace neuroshard
