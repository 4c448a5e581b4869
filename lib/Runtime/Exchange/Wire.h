//===- Wire.h - Values as they travel between devices -----------*- C++ -*-===//
//
// Results and gradients are computed in f32 and travel in the manifest's wire
// type. A sender rounds them once, to nearest even. It also rounds what it
// sends to itself, so that no value depends on which rank has the bag.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Bytes that `count` values take on the wire.
int64_t wireBytes(const Device &device, int64_t count);

/// Consecutive f32 values, and where to write them in the wire type.
struct Outgoing {
  const float *values;
  int64_t count;
  std::byte *to;
};
void encode(Device &device, std::span<const Outgoing> sections);

/// Consecutive received values, and where to write them as f32.
struct Incoming {
  const std::byte *from;
  int64_t count;
  float *to;
};
void decode(Device &device, std::span<const Incoming> sections);

/// Consecutive f32 values in memory.
struct Values {
  const float *first;
  int64_t count;
};
/// One message of all values in the wire type, section after section.
Buffer encodeAll(Device &device, BufferKind kind,
                 std::span<const Values> sections);

/// The first `count` values of a buffer in the wire type; the buffer itself if
/// that is f32.
Buffer encodeBuffer(Device &device, BufferKind kind, const Buffer &values,
                    int64_t count);

/// Adds the bytes of a send to other devices to the phase's figures.
void countSentBytes(Device &device, Phase phase,
                    std::span<const int64_t> bytesOfPeer);

/// Starts an all-to-all of values in the wire type and counts the bytes sent to
/// other devices. Counts are values per peer.
std::unique_ptr<CommunicatorRequest>
startValues(Device &device, Phase phase, const Buffer &encoded,
            std::span<const int64_t> sendCounts,
            std::span<const int64_t> receiveCounts);

/// Consecutive values of a message.
struct MessageSection {
  int64_t begin = 0;
  int64_t count = 0;
};
/// Waits and returns one section of each peer's message as f32, valid as long
/// as the request and `storage`.
std::vector<const float *> waitValues(Device &device,
                                      CommunicatorRequest &request,
                                      std::span<const MessageSection> sections,
                                      BufferKind kind, Buffer &storage);

/// Starts an all-to-all of blocks, which lie one after the other in `send`.
std::unique_ptr<CommunicatorRequest>
startBlocks(Device &device, Phase phase, BufferKind kind, const Buffer &send,
            const std::vector<Block> &sendBlocks,
            const std::vector<Block> &receiveBlocks);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H
