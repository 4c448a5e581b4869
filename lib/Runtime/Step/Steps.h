//===- Steps.h - The parts of a step on one device -------------*- C++ -*-===//
//
// What the nsrt_* calls of HostProgramABI.h do, without their error handling:
// these functions throw. Routed and Partials must not be failed ones.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H
#define NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H

#include "Device.h"

#include <functional>
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

/// The blocks on the owner's side, one per peer.
std::vector<Block> makeOwnerBlocks(const StreamSet &set,
                                   const ReceivedSet &received);
/// The blocks on the bags' side, one per owner, without what goes by relay.
std::vector<Block> makeBatchBlocks(const ExchangeLayout &layout,
                                   const Routed &routed);
/// The block of the device's replicated tables.
Block makeLocalBlock(const Device &device, const Routed &routed);

/// nsrt_lookup.
void lookUp(Device &device, Routed &routed, Partials &partials);
/// Where a caller wants a result, and as what.
struct ResultTarget {
  int64_t lookup;
  ElementType type;
  std::byte *out;
};

/// Writes those results that lookUp has left to be computed in place, all at
/// once, and says which; the others have to be put together from partials.
std::vector<bool> writeDirectly(Device &device, const Routed &routed,
                                const Partials &partials,
                                std::span<const ResultTarget> targets);
/// Computes what lookUp has left, before the weights change.
void finishDeferred(Device &device);
/// nsrt_results_start.
void startResults(Device &device, Routed &routed, Partials &partials);
/// nsrt_result_wait, nsrt_results_wait.
void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets);

/// nsrt_gradients_begin, nsrt_gradient_set, nsrt_gradients_start.
void beginGradients(Device &device, Routed &routed, Partials &gradients);
void setGradient(Device &device, Routed &routed, Partials &gradients,
                 int64_t lookup, ElementType type, const std::byte *gradient);
void startGradients(Device &device, Routed &routed, Partials &gradients);
/// Waits for the gradients of an exchange and puts them into one array.
void receiveGradients(Device &device, Routed &routed, Partials &gradients);

/// nsrt_weights_gradient.
void computeWeightsGradient(Device &device, Routed &routed, Partials &gradients,
                            float *out);

/// nsrt_update.
void update(Device &device, std::span<Routed *const> routed,
            std::span<Partials *const> gradients, float learningRate,
            int64_t step);

/// Sum of the blocks' sizes in floats.
int64_t totalFloats(const std::vector<Block> &blocks);

/// Adds what a send to other devices takes to the phase's figures.
void countSentBytes(Device &device, Phase phase,
                    std::span<const int64_t> bytesOfPeer);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_STEP_STEPS_H
