//===- GradientExchange.cpp - Gradients to owners -------------------------===//
//
// Kernels address the gradients of a step as offsets from one pointer, so the
// owner copies the gradients of all peers into one array.
//
//===----------------------------------------------------------------------===//

#include "GradientExchange.h"
#include "Blocks.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

/// The gradients of one block, as they were received.
struct ReceivedBlock {
  const std::byte *direct;
  const std::byte *relayed; ///< the block's last values.
  Block *block;
};

/// The ids and gradients of replicated tables as one message.
Buffer makeMessage(Device &device, const Routed &routed,
                   const Partials &gradients, int64_t bytes) {
  if (device.manifest().wireType == ElementType::F32)
    return gradients.local;
  Buffer message = device.buffers->acquire(BufferKind::SentGradients, bytes);
  std::memcpy(message.get(), gradients.local.get(),
              static_cast<size_t>(routed.localPayloadBytes));
  Outgoing rows{gradients.localRows, gradients.localBlock.size,
                message.get() + routed.localPayloadBytes};
  encode(device, {&rows, 1});
  return message;
}

void startGather(Device &device, const Routed &routed, Partials &gradients) {
  int64_t bytes =
      routed.localPayloadBytes + wireBytes(device, gradients.localBlock.size);
  std::vector<int64_t> receiveBytes;
  for (auto [idBytes, floats] : routed.replicatedOfPeer)
    receiveBytes.push_back(idBytes + wireBytes(device, floats));
  std::vector<int64_t> sendBytes(receiveBytes.size(), bytes);
  countSentBytes(device, Phase::GradientsExchange, sendBytes);
  gradients.gather = device.communicator->startAllGather(
      makeMessage(device, routed, gradients, bytes), bytes, receiveBytes);
}

/// Lays out the gathered ids of replicated tables; returns the gradients.
std::vector<const std::byte *>
receiveGathered(Device &device, const Routed &routed, Partials &gradients) {
  const StreamSet &set = device.layout(routed.exchange).locals[device.rank()];
  int32_t idBytes = device.manifest().exchanges[routed.exchange].idBytes();
  std::vector<const std::byte *> payloads;
  std::vector<const std::byte *> rows;
  for (const auto &message : gradients.gather->wait()) {
    payloads.push_back(message.data());
    rows.push_back(message.data() + routed.replicatedOfPeer[rows.size()].first);
  }
  layOutStreams(device, set, idBytes, payloads, routed.batchOfPeer,
                BufferKind::ReceivedGradients, gradients.gathered);
  gradients.gatheredBlocks = makeOwnerBlocks(set, gradients.gathered);
  return rows;
}

void merge(Device &device, Partials &gradients,
           std::vector<ReceivedBlock> &received) {
  for (ReceivedBlock &next : received) {
    for (int64_t &begin : next.block->begin)
      begin += gradients.numFloats;
    gradients.numFloats += next.block->size;
  }
  gradients.merged = device.buffers->acquireArray<float>(
      BufferKind::ReceivedGradients, gradients.numFloats);
  float *out = as<float>(gradients.merged);
  std::vector<Incoming> messages;
  for (const ReceivedBlock &next : received) {
    int64_t size = next.block->size, direct = next.block->directSize;
    messages.push_back({next.direct, direct, out});
    messages.push_back({next.relayed, size - direct, out + direct});
    out += size;
  }
  decode(device, messages);
  gradients.gradients = as<float>(gradients.merged);
}

} // namespace

void startGradients(Device &device, Routed &routed, Partials &gradients) {
  if (device.numDevices() == 1)
    return;
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (!layout.relays.empty())
    startRelayedGradients(device, routed, gradients);
  else if (layout.hasRemote)
    gradients.request = startBlocks(
        device, Phase::GradientsExchange, BufferKind::SentGradients,
        gradients.send, gradients.sendBlocks,
        makeOwnerBlocks(layout.owners[device.rank()], routed.owned));
  if (layout.hasReplicated)
    startGather(device, routed, gradients);
}

void receiveGradients(Device &device, Routed &routed, Partials &gradients) {
  if (gradients.received)
    return;
  gradients.received = true;
  if (device.numDevices() == 1) {
    gradients.receivedBlocks = gradients.sendBlocks;
    gradients.gradients = as<float>(gradients.send);
    gradients.numFloats = gradients.sendBlocks[0].size;
    return;
  }
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if ((layout.hasRemote && !gradients.request) ||
      (layout.hasReplicated && !gradients.gather))
    fail("gradients of exchange ", routed.exchange,
         " are read before nsrt_gradients_start");
  std::vector<ReceivedBlock> received;
  gradients.receivedBlocks =
      makeOwnerBlocks(layout.owners[device.rank()], routed.owned);
  if (gradients.request) {
    const auto &messages = gradients.request->wait();
    std::vector<const std::byte *> relayed(messages.size());
    if (!layout.relays.empty())
      relayed = receiveRelayedGradients(device, routed, gradients);
    for (size_t peer = 0; peer < messages.size(); ++peer)
      received.push_back({messages[peer].data(), relayed[peer],
                          &gradients.receivedBlocks[peer]});
  }
  if (gradients.gather) {
    std::vector<const std::byte *> rows =
        receiveGathered(device, routed, gradients);
    for (size_t peer = 0; peer < rows.size(); ++peer)
      received.push_back(
          {rows[peer], nullptr, &gradients.gatheredBlocks[peer]});
  }
  merge(device, gradients, received);
  gradients.request.reset();
  gradients.relayRequest.reset();
  gradients.gather.reset();
}

} // namespace neuroshard::runtime
