//===- GradientExchange.cpp - Gradients to owners -------------------------===//
//
// Kernels read f32, of each rank all samples. Gradients that travel so are read
// in the messages; others are converted into one array, and what travels in
// pieces is put together there.
//
//===----------------------------------------------------------------------===//

#include "GradientExchange.h"
#include "Blocks.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "RelayDuties.h"
#include "RowSumExchange.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdPayload.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

/// Ids of the gathered tables, by rank and stream.
std::vector<std::vector<int64_t>> gatheredIds(const Routed &routed,
                                              const Partials &gradients) {
  std::vector<std::vector<int64_t>> ids;
  for (const std::vector<int64_t> &ofPeer : routed.localIdsOfPeer)
    ids.push_back(gradients.replicas.gathered.idsOf(ofPeer));
  return ids;
}

/// Bytes of the ids in each rank's message to all.
std::vector<int64_t> idBytesOfPeers(const Device &device, const Routed &routed,
                                    const Partials &gradients) {
  const StreamSet &set = gradients.replicas.gathered.set;
  int32_t idBytes = device.packedIdBytes(routed.exchange);
  std::vector<std::vector<int64_t>> ids = gatheredIds(routed, gradients);
  std::vector<int64_t> bytes;
  for (size_t peer = 0; peer < ids.size(); ++peer)
    bytes.push_back(IdPayload(set, static_cast<int64_t>(peer),
                              routed.batchOfPeer[peer], idBytes, ids[peer])
                        .bytes());
  return bytes;
}

void startGather(Device &device, const Routed &routed, Partials &gradients) {
  std::vector<int64_t> receiveBytes = idBytesOfPeers(device, routed, gradients);
  std::vector<Block> blocks = makeLocalBlocks(
      gradients.replicas.gathered, routed, device.wireType().gradients);
  for (size_t peer = 0; peer < blocks.size(); ++peer)
    receiveBytes[peer] += gradientBytes(device, blocks[peer].size);
  int64_t bytes = receiveBytes[static_cast<size_t>(device.rank())];
  std::vector<int64_t> sendBytes(receiveBytes.size(), bytes);
  countSentBytes(device, Phase::GradientsExchange, sendBytes);
  gradients.gather = device.communicator->startAllGather(
      MessageKind::Gradients, MessageMemory::Device, gradients.gatherMessage,
      bytes, receiveBytes);
}

/// Rows of a message, and where they belong among the values of a block that go
/// the same way.
struct Piece {
  const std::byte *first;
  std::vector<RowsOfMessage> rows;
  int64_t begin = 0;
};

/// A block of gradients as it was received.
struct Message {
  ReceivedBlock *block;
  Piece direct;
  std::vector<Piece> relayed;
};

/// Lets blocks point to their messages, or to values that are put together from
/// them.
class RowSetter {
public:
  RowSetter(Device &device, std::span<const Message> messages,
            Partials &gradients)
      : device(device), messages(messages), gradients(gradients),
        format(device.wireType().gradients) {}

  void run() {
    int64_t total = 0;
    for (const Message &message : messages)
      for (bool relayed : {false, true})
        total += isReadInPlace(message, relayed) ? 0 : sizeOf(message, relayed);
    if (total > 0)
      gradients.decoded =
          device.buffers->acquire(BufferKind::ReceivedGradients,
                                  total * static_cast<int64_t>(sizeof(float)));
    next = as<float>(gradients.decoded);
    for (const Message &message : messages) {
      message.block->direct = rowsOf(message, false);
      message.block->relayed = rowsOf(message, true);
    }
    if (!moves.empty())
      device.backend->moveRows(moves);
  }

private:
  static std::span<const Piece> piecesOf(const Message &message, bool relayed) {
    if (relayed)
      return message.relayed;
    return {&message.direct, 1};
  }
  static int64_t sizeOf(const Message &message, bool relayed) {
    const Block &block = message.block->block;
    return relayed ? block.size - block.directSize : block.directSize;
  }
  bool isReadInPlace(const Message &message, bool relayed) const {
    return format == WireFormat::F32 && piecesOf(message, relayed).size() <= 1;
  }

  const float *rowsOf(const Message &message, bool relayed) {
    std::span<const Piece> pieces = piecesOf(message, relayed);
    if (isReadInPlace(message, relayed))
      return pieces.empty() ? nullptr
                            : reinterpret_cast<const float *>(pieces[0].first);
    for (const Piece &piece : pieces)
      for (const RowsOfMessage &rows : piece.rows)
        rows.addUnpacking(piece.first, next + piece.begin, format, moves);
    return std::exchange(next, next + sizeOf(message, relayed));
  }

  Device &device;
  std::span<const Message> messages;
  Partials &gradients;
  WireFormat format;
  float *next = nullptr;
  std::vector<RowMove> moves;
};

/// One received block for each layout.
std::vector<ReceivedBlock> blocksOf(std::vector<Block> layouts) {
  std::vector<ReceivedBlock> blocks;
  for (Block &layout : layouts)
    blocks.emplace_back().block = std::move(layout);
  return blocks;
}

void addOwned(Device &device, const Routed &routed, Partials &gradients,
              std::vector<Message> &messages) {
  WireFormat format = device.wireType().gradients;
  const ExchangeLayout &layout = device.gradientLayout(routed);
  const StreamSet &owned = layout.owners[device.rank()];
  if (layout.relays.empty())
    gradients.receivedRows = waitForAll(*gradients.request);
  else
    receiveRelayedGradients(device, routed, gradients);
  for (size_t peer = 0; peer < gradients.receivedRows.size(); ++peer)
    messages.push_back({&gradients.gradients[peer],
                        {gradients.receivedRows[peer],
                         directRows(owned, static_cast<int64_t>(peer),
                                    routed.batchOfPeer[peer],
                                    routed.ownedIdsOfPeer[peer], format)},
                        {}});
  for (const RelayedPiece &piece : gradients.pieces) {
    HierarchicalExchange exchange(device.gradientLayout(routed), device, format,
                                  piece.batches);
    for (size_t peer = 0; peer < piece.rows.size(); ++peer)
      messages[peer].relayed.push_back(
          {piece.rows[peer], exchange.relayedRows(static_cast<int64_t>(peer)),
           piece.begins[peer] * owned.relayedWidth});
  }
}

/// Makes the gathered ids of replicated tables readable, too.
void addGathered(Device &device, const Routed &routed, Partials &gradients,
                 std::vector<Message> &messages) {
  const StreamSet &set = gradients.replicas.gathered.set;
  int32_t idBytes = device.packedIdBytes(routed.exchange);
  std::vector<const std::byte *> payloads = waitForAll(*gradients.gather);
  std::vector<std::vector<int64_t>> ids = gatheredIds(routed, gradients);
  gradients.gathered =
      readPayloads(device, set, idBytes, 0, payloads, routed.batchOfPeer, ids,
                   BufferKind::ReceivedGradients);
  gradients.gatheredGradients = blocksOf(
      makeLocalBlocks(gradients.replicas.gathered, routed, WireFormat::F32));
  std::vector<int64_t> sizes = idBytesOfPeers(device, routed, gradients);
  for (size_t peer = 0; peer < payloads.size(); ++peer)
    messages.push_back(
        {&gradients.gatheredGradients[peer],
         {payloads[peer] + sizes[peer],
          directRows(set, static_cast<int64_t>(peer), routed.batchOfPeer[peer],
                     ids[peer], device.wireType().gradients)},
         {}});
}

/// Those of a single device.
void readOwn(const StreamSet &owned, Partials &gradients) {
  ReceivedBlock &block = gradients.gradients[0];
  block.direct = as<const float>(gradients.send);
  block.inPlace.resize(owned.entries.size());
  for (size_t e = 0; e < owned.entries.size(); ++e) {
    const EntryLayout &entry = owned.entries[e];
    const InPlaceGradient &given =
        gradients.inPlace[static_cast<size_t>(entry.lookup)];
    if (!given.first)
      continue;
    block.inPlace[e] = given.first + entry.cols.begin;
    block.block.stride[e] = given.stride;
  }
}

} // namespace

void startGradients(Device &device, Routed &routed, Partials &gradients) {
  device.order.add(Exchanged::Gradients, routed.input);
  if (device.numDevices() == 1)
    return;
  // In the order of all ranks: what was sent earlier before gradients.
  relayAll(device);
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  const ExchangeLayout &layout = device.gradientLayout(routed);
  if (!layout.relays.empty())
    startRelayedGradients(device, routed, gradients);
  else if (layout.hasRemote)
    gradients.request = startValues(
        device, MessageKind::Gradients, gradients.send,
        sizesOf(gradients.sendBlocks),
        sizesOf(makeDirectOwnerBlocks(device.gradientLayout(routed), device,
                                      routed, device.wireType().gradients)));
  if (!gradients.replicas.gathered.entries.empty())
    startGather(device, routed, gradients);
  if (!gradients.replicas.tables.empty())
    startRowSums(device, gradients);
}

void receiveGradients(Device &device, Routed &routed, Partials &gradients) {
  if (gradients.received)
    return;
  gradients.received = true;
  gradients.gradients =
      blocksOf(makeOwnerBlocks(device.gradientLayout(routed), device, routed));
  if (device.numDevices() == 1)
    return readOwn(device.gradientLayout(routed).owners[0], gradients);
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  const ExchangeLayout &layout = device.gradientLayout(routed);
  const ReplicaUpdate &replicas = gradients.replicas;
  bool isSent = gradients.request ||
                (!gradients.pieces.empty() && gradients.pieces[0].request);
  if ((layout.hasRemote && !isSent) ||
      (!replicas.gathered.entries.empty() && !gradients.gather) ||
      (!replicas.tables.empty() && !gradients.sumsRequest))
    fail("gradients of exchange ", routed.exchange,
         " are read before nsrt_gradients_start");
  std::vector<Message> messages;
  if (isSent)
    addOwned(device, routed, gradients, messages);
  if (gradients.gather)
    addGathered(device, routed, gradients, messages);
  RowSetter(device, messages, gradients).run();
}

} // namespace neuroshard::runtime
