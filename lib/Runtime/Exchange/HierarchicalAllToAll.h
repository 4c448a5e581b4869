//===- HierarchicalAllToAll.h - Exchange by relays in groups ----*- C++ -*-===//
//
// Of relayed lookups, the owners of a group send their partial sums of a bag
// to the member of their own group that has the same place as the bag's home
// has in its group. This relay adds them up and sends one sum home. Gradients
// go the same way back. All else travels directly, in the first hop of results
// and gradients alike; a home is its own relay for its own group.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H

#include "Wire.h"

namespace neuroshard::runtime {

/// Begins the first hop of results: `partials.send` in `partials.sendBlocks`.
void startRelayedResults(Device &device, const Routed &routed,
                         Partials &partials);
/// The second hop. Sets receivedRows, for which receivedBlocks must be set,
/// and relayedRows.
void receiveRelayedResults(Device &device, const Routed &routed,
                           Partials &partials);

/// Values of the gradients that a home sends to the relays of all groups, one
/// group after the other.
int64_t relayedGradientValues(const ExchangeLayout &layout,
                              const Routed &routed);
/// Begins the first hop of gradients: `gradients.send` has the blocks and then
/// what goes to relays.
void startRelayedGradients(Device &device, const Routed &routed,
                           Partials &gradients);
/// The second hop. Returns for each home the gradients that have come by
/// relay, as they travel, valid as long as both requests.
std::vector<const std::byte *> receiveRelayedGradients(Device &device,
                                                       const Routed &routed,
                                                       Partials &gradients);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_HIERARCHICALALLTOALL_H
