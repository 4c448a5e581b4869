//===- IdExchange.h - Ids from samples to owners ----------------*- C++ -*-===//
//
// The ids of the local batch: checked, sent to the devices that own their rows,
// and made readable there for the kernels. The functions throw; the Routed
// passed to them must not be failed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H

#include "Device/Device.h"

#include <span>

namespace neuroshard::runtime {

/// Sets the sizes of the local batch in `routed`. Throws a RuntimeError if
/// numbers or pointers of the input are wrong. Results of unpooled lookups have
/// no rows until routeIds has counted their ids.
void describeBatch(const Device &device, const JaggedInput &input,
                   Routed &routed);

/// Checks ids and starts their exchange, after describeBatch. `earlierError` is
/// the text of an error that this rank has found already, or "". An error, or a
/// wrong id, ends the step on all ranks: routed.error is then set on each.
void routeIds(Device &device, const JaggedInput &input, Routed &routed,
              const std::string &earlierError);

/// Throws unless all ranks are about to average copies that drift, and have
/// exchanged and updated alike before: one that sends ids, or waits for those
/// of others, is told, too.
void requireAllAverage(Device &device);

/// Waits for the ids of an exchange.
void receiveIds(Device &device, Routed &routed);

/// The ids in the payloads of consecutive ranks, where they are; makes the
/// offsets of their bags. Payloads must outlive the set. Ranks that are no
/// readers of a stream have no bags there.
ReceivedSet readPayloads(Device &device, const StreamSet &set, int32_t idBytes,
                         int64_t firstRank,
                         std::span<const std::byte *const> payloads,
                         std::span<const int64_t> batches,
                         std::span<const std::vector<int64_t>> idsOfPeer,
                         BufferKind kind);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H
