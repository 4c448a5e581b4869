//===- RelayDuties.h - Order of second stages at relays ---------*- C++ -*-===//
//
// Other ranks wait for the second stages of ids and results that this device
// relays, whether it asks for its own or not. All ranks begin them in one
// order: that in which the first stages were sent. A rank begins those that are
// due, results before later ids, before it waits for anything later, sends
// gradients or drops a handle, and once it has sent its next header: a rank
// that calls in another order is told by that.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_RELAYDUTIES_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_RELAYDUTIES_H

#include "Device/Device.h"

namespace neuroshard::runtime {

/// Begins the second stages of ids up to those of `last`, or of all.
void relayIds(Device &device, const Routed *last = nullptr);
/// The same for results.
void relayResults(Device &device, const Partials *last = nullptr);
/// All that are due, in the order of all ranks.
void relayAll(Device &device);
/// Before a handle is released. A failure ends the group: others wait for the
/// messages.
void relayBeforeRelease(Device &device, const Routed *routed,
                        const Partials *partials) noexcept;

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_RELAYDUTIES_H
