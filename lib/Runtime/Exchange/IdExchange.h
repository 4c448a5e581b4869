//===- IdExchange.h - Ids from samples to owners ----------------*- C++ -*-===//
//
// The ids of the local batch: checked, sent to the devices that own their rows,
// and laid out there for the kernels. The functions throw; the Routed passed to
// them must not be failed.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H

#include "Device/Device.h"

#include <span>

namespace neuroshard::runtime {

/// The ids of one rank's batch as the caller has them.
struct JaggedInput {
  const void *ids;
  int64_t numIds;
  const int64_t *offsets;
  int64_t numOffsets;
  const float *weights;
};

/// Sets up what later calls ask about the local batch. Throws a RuntimeError
/// if the offsets are wrong; an unpooled lookup then has no rows.
void describeBatch(const Device &device, const JaggedInput &input,
                   Routed &routed);

/// nsrt_route after describeBatch. `earlierError` is the text of an error
/// this rank has already found; it ends the step on all ranks. Wrong ids do
/// the same: then routed.error is set on return, on every rank.
void routeIds(Device &device, const JaggedInput &input, Routed &routed,
              const std::string &earlierError);

/// Waits for the ids of an exchange and lays them out for the kernels.
void receiveIds(Device &device, Routed &routed);

/// Lays out the payloads of one or more peers, with their batches, as streams
/// over all their bags. A single payload is read in place and must stay.
void layOutStreams(Device &device, const StreamSet &set, int32_t idBytes,
                   std::span<const std::byte *const> payloads,
                   std::span<const int64_t> batches, ReceivedSet &received);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H
