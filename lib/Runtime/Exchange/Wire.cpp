//===- Wire.cpp - Values as they travel between devices -------------------===//

#include "Wire.h"

namespace neuroshard::runtime {

int64_t resultBytes(const Device &device, int64_t count) {
  return count * valueBytes(device.wireType().results);
}

int64_t gradientBytes(const Device &device, int64_t count) {
  return count * valueBytes(device.wireType().gradients);
}

RowMove moveOf(const std::byte *from, WireFormat fromFormat, std::byte *to,
               WireFormat toFormat, int64_t count) {
  RowMove move;
  move.source = {from, count};
  move.sourceFormat = fromFormat;
  move.target = {to, count};
  move.targetFormat = toFormat;
  move.rows = 1;
  move.width = count;
  return move;
}

RowMove copyOf(const std::byte *from, std::byte *to, int64_t bytes) {
  return moveOf(from, WireFormat::F32, to, WireFormat::F32,
                bytes / valueBytes(WireFormat::F32));
}

void countSentBytes(Device &device, Phase phase,
                    std::span<const int64_t> bytesOfPeer) {
  const DeviceGroups &groups = device.plan->groups;
  for (size_t peer = 0; peer < bytesOfPeer.size(); ++peer) {
    if (static_cast<int32_t>(peer) != device.rank())
      device.figures.sentBytes[static_cast<size_t>(phase)] += bytesOfPeer[peer];
    if (!groups.sameGroup(static_cast<int64_t>(peer), device.rank()))
      device.figures.leftGroupBytes[static_cast<size_t>(phase)] +=
          bytesOfPeer[peer];
  }
}

std::unique_ptr<CommunicatorRequest>
startValues(Device &device, MessageKind kind, const Buffer &message,
            std::span<const int64_t> sendCounts,
            std::span<const int64_t> receiveCounts) {
  bool areResults =
      kind == MessageKind::Results || kind == MessageKind::ResultsSecondHop;
  auto bytesOf = [&](std::span<const int64_t> counts) {
    std::vector<int64_t> bytes;
    for (int64_t count : counts)
      bytes.push_back(areResults ? resultBytes(device, count)
                                 : gradientBytes(device, count));
    return bytes;
  };
  std::vector<int64_t> sendBytes = bytesOf(sendCounts);
  countSentBytes(device,
                 areResults ? Phase::ResultsExchange : Phase::GradientsExchange,
                 sendBytes);
  return device.communicator->startAllToAll(
      kind, MessageMemory::Device, message, sendBytes, bytesOf(receiveCounts));
}

std::vector<const std::byte *> waitForAll(CommunicatorRequest &request) {
  std::vector<const std::byte *> messages;
  for (const auto &message : request.wait())
    messages.push_back(message.data());
  return messages;
}

} // namespace neuroshard::runtime
