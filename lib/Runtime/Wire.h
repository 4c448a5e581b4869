//===- Wire.h - Values as they travel between devices ----------*- C++ -*-===//
//
// Results and gradients are computed in f32 and travel in the manifest's wire
// type. A sender rounds them once, to nearest even, what it sends to itself
// like all the rest, so that no value depends on the rank its bag is on.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_WIRE_H
#define NEUROSHARD_LIB_RUNTIME_WIRE_H

#include "Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Bytes that `count` values take on the wire.
int64_t wireBytes(const Device &device, int64_t count);

/// Consecutive f32 values that are written to `to` as they travel.
struct Outgoing {
  const float *values;
  int64_t count;
  std::byte *to;
};
void encode(Device &device, std::span<const Outgoing> parts);

/// Values that have arrived, to be written to `to` as f32.
struct Incoming {
  const std::byte *from;
  int64_t count;
  float *to;
};
void decode(Device &device, std::span<const Incoming> parts);

/// Sends the consecutive blocks of `send` and receives blocks, counting the
/// bytes to other devices.
std::unique_ptr<CommunicatorRequest>
startBlocks(Device &device, Phase phase, const Buffer &send,
            const std::vector<Block> &sendBlocks,
            const std::vector<Block> &receiveBlocks);

/// Waits for what startBlocks has started. Returns the f32 rows of each peer,
/// valid as long as the request and `storage`.
std::vector<const float *> waitBlocks(Device &device,
                                      CommunicatorRequest &request,
                                      const std::vector<Block> &blocks,
                                      Buffer &storage);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_WIRE_H
