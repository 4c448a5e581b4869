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

/// Sets the sizes of the local batch in `routed`. Throws a RuntimeError if the
/// offsets are wrong; results of unpooled lookups then have no rows.
void describeBatch(const Device &device, const JaggedInput &input,
                   Routed &routed);

/// Checks ids and starts their exchange, after describeBatch. `earlierError` is
/// the text of an error that this rank has found already, or "". An error, or a
/// wrong id, ends the step on all ranks: routed.error is then set on each.
void routeIds(Device &device, const JaggedInput &input, Routed &routed,
              const std::string &earlierError);

/// Waits for the ids of an exchange and makes the streams that kernels read.
void receiveIds(Device &device, Routed &routed);

/// Makes streams over all bags of one or more peers from their payloads.
/// `batches` are the bags per peer. A single payload is read in place and must
/// outlive the streams. `kind`: of the buffers of others.
void layOutStreams(Device &device, const StreamSet &set, int32_t idBytes,
                   std::span<const std::byte *const> payloads,
                   std::span<const int64_t> batches, BufferKind kind,
                   ReceivedSet &received);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_IDEXCHANGE_H
