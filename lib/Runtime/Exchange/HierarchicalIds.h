//===- HierarchicalIds.h - Hierarchical all-to-all of ids ------*- C++ -*-===//
//
// Among groups of devices, a rank sends the ids that a group has rows for once:
// to the relay there, the device with the rank's own index in its group. The
// relay hands them out to the owners of its group. So they cross the links
// between groups once, over those of all devices of the group. Without groups a
// rank sends its ids to every owner.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALIDS_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALIDS_H

#include "Device/Device.h"

#include <vector>

namespace neuroshard::runtime {

/// Per device, the streams that this rank sends it in the first message; none
/// to a device that is not its relay.
std::vector<const StreamSet *> setsByReceiver(const Device &device,
                                              const ExchangeLayout &layout);

/// The bytes of the first messages that this device receives, by rank.
std::vector<int64_t> bytesOfFirstMessages(const Device &device,
                                          const Routed &routed);

/// Waits for the first messages of an exchange and hands them out as a relay.
void startSecondStageOfIds(Device &device, Routed &routed);

/// Waits for the ids of an exchange, whose second stage must have begun if it
/// has one. Returns the payload of each rank.
std::vector<const std::byte *> waitForIds(Device &device, Routed &routed);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALIDS_H
