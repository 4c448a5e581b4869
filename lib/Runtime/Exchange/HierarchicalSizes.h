//===- HierarchicalSizes.h - Message sizes of relayed exchanges -*- C++ -*-===//
//
// All sizes follow from the layouts and the batches of all ranks, which the
// exchange of ids has told everyone.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALSIZES_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALSIZES_H

#include "Step/Device.h"

#include <vector>

namespace neuroshard::runtime {

/// One exchange with relays, from the view of one device.
class Hops {
public:
  Hops(Device &device, const Routed &routed)
      : device(device), manifest(device.manifest()),
        layout(device.layout(routed.exchange)), batches(routed.batchOfPeer),
        rank(device.rank()), member(place(rank).member),
        members(manifest.groups[size_t(place(rank).group)]),
        relay(layout.relays[size_t(place(rank).group)]) {}

  int64_t numRanks() const { return int64_t(manifest.places.size()); }
  const GroupPlace &place(int64_t rank) const {
    return manifest.places[size_t(rank)];
  }
  bool isInOwnGroup(int64_t peer) const {
    return place(peer).group == place(rank).group;
  }
  /// The homes of a relay with this place in its group.
  std::vector<int32_t> homesOf(int32_t relayMember) const {
    std::vector<int32_t> homes;
    for (const std::vector<int32_t> &group : manifest.groups)
      homes.push_back(group[size_t(relayMember)]);
    return homes;
  }

  /// Values of one home's bags that pass between an owner and its relay.
  int64_t ofHome(int64_t owner, int64_t home) const {
    return batches[size_t(home)] * layout.owners[size_t(owner)].relayedWidth;
  }
  /// The same for all homes of the relay.
  int64_t ofRelay(int64_t owner, int64_t relay) const {
    if (place(owner).group != place(relay).group)
      return 0;
    int64_t values = 0;
    for (int32_t home : homesOf(place(relay).member))
      values += ofHome(owner, home);
    return values;
  }
  /// Values that pass between a relay and a home.
  int64_t ofHop(int64_t relay, int64_t home) const {
    if (place(relay).member != place(home).member)
      return 0;
    return batches[size_t(home)] *
           layout.relays[size_t(place(relay).group)].width;
  }

  /// countOf(rank) for all ranks.
  template <typename Function>
  std::vector<int64_t> countsOf(const Function &countOf) const {
    std::vector<int64_t> counts;
    for (int64_t peer = 0; peer < numRanks(); ++peer)
      counts.push_back(countOf(peer));
    return counts;
  }

  Device &device;
  const Manifest &manifest;
  const ExchangeLayout &layout;
  const std::vector<int64_t> &batches; ///< per rank.
  int64_t rank;
  int32_t member;                      ///< own place in the group.
  const std::vector<int32_t> &members; ///< of the own group.
  const RelayLayout &relay;            ///< of the own group.
};

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALSIZES_H
