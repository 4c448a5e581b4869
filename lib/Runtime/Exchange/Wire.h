//===- Wire.h - Values as they travel between devices -----------*- C++ -*-===//
//
// Results and gradients are computed in f32 and travel in the manifest's wire
// type. A sender rounds them once, to nearest even, what it sends to itself
// like all the rest, so that no value depends on the rank its bag is on.
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

/// Consecutive f32 values, and where to write them as they travel.
struct Outgoing {
  const float *values;
  int64_t count;
  std::byte *to;
};
void encode(Device &device, std::span<const Outgoing> parts);

/// Consecutive values that have arrived, and where to write them as f32.
struct Incoming {
  const std::byte *from;
  int64_t count;
  float *to;
};
void decode(Device &device, std::span<const Incoming> parts);

/// Consecutive f32 values in memory.
struct Values {
  const float *first;
  int64_t count;
};
/// One message part after the other, as they travel.
Buffer encodeAll(Device &device, std::span<const Values> parts);

/// The first values of a buffer; the buffer itself if they travel as f32.
Buffer encodeBuffer(Device &device, const Buffer &values, int64_t count);

/// Adds what a send to other devices takes to the phase's figures.
void countSentBytes(Device &device, Phase phase,
                    std::span<const int64_t> bytesOfPeer);

/// Sends and receives values that are encoded already, counting the bytes to
/// other devices. Counts are values per peer.
std::unique_ptr<CommunicatorRequest>
startValues(Device &device, Phase phase, const Buffer &encoded,
            std::span<const int64_t> sendCounts,
            std::span<const int64_t> receiveCounts);

/// Some consecutive values of a message.
struct MessagePart {
  int64_t begin = 0;
  int64_t count = 0;
};
/// Waits, and returns one part of each peer's message as f32, valid as long as
/// the request and `storage`.
std::vector<const float *> waitValues(Device &device,
                                      CommunicatorRequest &request,
                                      std::span<const MessagePart> parts,
                                      Buffer &storage);

/// The consecutive blocks of `send`.
std::unique_ptr<CommunicatorRequest>
startBlocks(Device &device, Phase phase, const Buffer &send,
            const std::vector<Block> &sendBlocks,
            const std::vector<Block> &receiveBlocks);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H
