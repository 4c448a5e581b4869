//===- IdHeader.h - Header of the exchange of ids ---------------*- C++ -*-===//
//
// The numbers that one rank sends to another before its ids: i64 each, first
// those of the enumeration, then the ids of each stream that the receiver
// owns, then those of each stream of replicated tables, then those of each
// stream of its group if it is the sender's relay there. The sizes of all later
// messages of the step follow from them, so that nobody has to read a message
// to know its size. All headers of a plan have one length, so that ranks that
// run different functions can tell.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_ARTIFACT_IDHEADER_H
#define NEUROSHARD_ARTIFACT_IDHEADER_H

#include "neuroshard/Artifact/ExchangeLayout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neuroshard {

/// In place of the exchange's number: the rank averages copies that drift.
inline constexpr int64_t kAveragesCopies = -1;

/// The first numbers of a header.
enum class IdHeader : size_t {
  Exchange,
  ErrorBytes, ///< length of the text of an error; 0: no error.
  Batch,
  CallOrder, ///< hash of the exchanges and updates so far.
  Frozen,    ///< hash of the tables whose gradients will not travel.
  Counts,    ///< the first number of ids.
};

/// From so many ranks on headers go by relay if ranks are in groups, as a
/// message to each rank takes longer than two journeys.
inline constexpr int32_t kRanksOfRelayedHeaders = 32;

inline bool relaysHeaders(const DeviceGroups &groups) {
  return groups.numGroups() > 1 &&
         groups.numDevices() >= kRanksOfRelayedHeaders;
}

/// Numbers in each header of a plan; those that a rank does not need are 0.
inline size_t idHeaderNumbers(std::span<const ExchangeLayout> layouts) {
  size_t most = 0;
  for (const ExchangeLayout &layout : layouts) {
    size_t ofGroup = 0;
    for (const StreamSet &group : layout.groupIds)
      ofGroup = std::max(ofGroup, group.streams.size());
    for (size_t device = 0; device < layout.owners.size(); ++device)
      most = std::max(most, layout.owners[device].streams.size() +
                                layout.locals[device].streams.size() + ofGroup);
  }
  return static_cast<size_t>(IdHeader::Counts) + most;
}

} // namespace neuroshard

#endif // NEUROSHARD_ARTIFACT_IDHEADER_H
