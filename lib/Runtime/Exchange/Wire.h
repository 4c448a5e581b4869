//===- Wire.h - Values as they travel between devices -----------*- C++ -*-===//
//
// Results and gradients are computed in f32. Each travel in their own format,
// the wire type of the manifest. A sender rounds them once, to nearest even. It
// also rounds what it sends to itself, so that no value depends on which rank
// has the bag.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H
#define NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H

#include "Device/Device.h"

#include <span>
#include <vector>

namespace neuroshard::runtime {

/// Bytes that `count` values of results, or of gradients, take on the wire. A
/// scale of a row counts as the values that have its room.
int64_t resultBytes(const Device &device, int64_t count);
int64_t gradientBytes(const Device &device, int64_t count);

/// Copies `count` consecutive values of formats without scales; rounds them if
/// formats differ.
RowMove moveOf(const std::byte *from, WireFormat fromFormat, std::byte *to,
               WireFormat toFormat, int64_t count);
/// Copies bytes, a multiple of 4.
RowMove copyOf(const std::byte *from, std::byte *to, int64_t bytes);

/// Adds the bytes of a send to other devices to the phase's figures.
void countSentBytes(Device &device, Phase phase,
                    std::span<const int64_t> bytesOfPeer);

/// Starts an all-to-all of results or gradients in their wire type and counts
/// the bytes sent to other devices. Counts are values per peer.
std::unique_ptr<CommunicatorRequest>
startValues(Device &device, MessageKind kind, const Buffer &message,
            std::span<const int64_t> sendCounts,
            std::span<const int64_t> receiveCounts);

/// Where the message of each peer begins.
std::vector<const std::byte *> waitForAll(CommunicatorRequest &request);

} // namespace neuroshard::runtime

#endif // NEUROSHARD_LIB_RUNTIME_EXCHANGE_WIRE_H
