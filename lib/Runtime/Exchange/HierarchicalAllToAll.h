//===- HierarchicalAllToAll.h - Hierarchical all-to-all --------*- C++ -*-===//
//
// An exchange in two stages that sends one sum per group and sample to other
// groups. First, the owners of a group send their partial sums of a sample to
// the relay: the device of their group with the same index in it as the
// sample's rank has in its own group. Then the relay adds them up and sends one
// sum to the sample's rank. Gradients go the same way back. The values of
// lookups that are not relayed travel directly, in the first stage. A rank is
// its own relay for its own group.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H

#include "Blocks.h"
#include "MessageRows.h"
#include "Wire.h"
#include "neuroshard/Artifact/HierarchicalSizes.h"

#include <functional>

namespace neuroshard::runtime {

/// One exchange with relays as one device sees it, for what travels in one
/// format. `layout`: here and below, that of results or that of gradients.
class HierarchicalExchange : public HierarchicalSizes {
public:
  HierarchicalExchange(const ExchangeLayout &layout, Device &device,
                       const Routed &routed, WireFormat format)
      : HierarchicalExchange(layout, device, format, routed.batchOfPeer) {}
  /// Of some samples of each rank.
  HierarchicalExchange(const ExchangeLayout &layout, Device &device,
                       WireFormat format, const std::vector<int64_t> &batches)
      : HierarchicalSizes(layout, device.plan->groups, batches, format),
        device(device), rank(device.rank()),
        relay(layout.relays[static_cast<size_t>(groups.placeOf(rank).group)]) {}

  int64_t numRanks() const { return groups.numDevices(); }
  const std::vector<int32_t> &ownGroup() const {
    return groups.group(groups.placeOf(rank).group);
  }
  /// The ranks that a relay serves, one in each group; also the relays that
  /// serve a rank.
  std::vector<int32_t> ranksServedBy(int64_t relay) const {
    return groups.devicesWithIndex(groups.placeOf(relay).index);
  }
  int64_t bytesOf(int64_t values) const { return values * valueBytes(format); }
  /// The rows that this device, as an owner, sends to a relay or gets from it,
  /// of one rank's samples: one piece if the format has no scales.
  std::vector<RowsOfMessage> relayedRows(int64_t sampleRank) const;

  /// countOf(rank) for all ranks.
  template <typename Function>
  std::vector<int64_t> countsOf(const Function &countOf) const {
    std::vector<int64_t> counts;
    for (int64_t peer = 0; peer < numRanks(); ++peer)
      counts.push_back(countOf(peer));
    return counts;
  }

  using HierarchicalSizes::batches;
  using HierarchicalSizes::format;
  using HierarchicalSizes::groups;
  using HierarchicalSizes::layout;

  Device &device;
  int64_t rank;
  const RelayLayout &relay; ///< of this device's group.
};

/// Columns of the rows that the relays of each group send, or get gradients
/// for; empty without relays.
std::vector<ScaledColumns> relayedColumns(const ExchangeLayout &layout,
                                          Device &device, const Routed &routed,
                                          WireFormat format);

/// The pieces in which the relayed values of one direction travel, without
/// messages yet.
std::vector<RelayedPiece> makePieces(const ExchangeLayout &layout,
                                     Device &device, const Routed &routed,
                                     WireFormat format);
/// Values of each message of a piece's first stage that go directly: with those
/// of the first piece.
std::vector<int64_t> directSizes(const std::vector<Block> &blocks,
                                 bool isFirst);

/// Begins the first stage of results: sends `partials.sendBlocks`, in pieces,
/// each of which is looked up before it is sent.
void startRelayedResults(
    Device &device, const Routed &routed, Partials &partials,
    const std::function<void(const RelayedPiece &)> &lookUp);
/// Waits for the first stage of each piece of results and begins its second.
/// Sets receivedBlocks and receivedRows.
void startSecondStageOfResults(Device &device, const Routed &routed,
                               Partials &partials);
/// Waits for the second stage of results, which must have begun. Sets the rows
/// of all pieces.
void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials);

/// Sets sendBegins and, where there are relays, the pieces, for which
/// sendBlocks must be set: piece by piece, to each rank its block, then what it
/// gets as a relay. Returns the number of all values.
int64_t placeGradients(Device &device, const Routed &routed,
                       Partials &gradients);
/// Begins the first stage of gradients.
void startRelayedGradients(Device &device, const Routed &routed,
                           Partials &gradients);
/// Runs the second stage of gradients. Sets the rows of all pieces and
/// receivedRows, what each rank has sent directly.
void receiveRelayedGradients(Device &device, const Routed &routed,
                             Partials &gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H
