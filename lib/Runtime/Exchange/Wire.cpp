//===- Wire.cpp - Values as they travel between devices -------------------===//
//
// With wire type f32 values travel from and to the memory that kernels use;
// with others they pass through one more buffer on each side.
//
//===----------------------------------------------------------------------===//

#include "Wire.h"
#include "Blocks.h"
#include "neuroshard/Runtime/Numerics.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

/// Calls function(section, begin, end) in parallel on ranges of the values of
/// all sections.
template <typename Section, typename Function>
void forRanges(Device &device, std::span<const Section> sections,
               const Function &function) {
  constexpr int64_t kValuesPerChunk = 1 << 15;
  struct Chunk {
    const Section *section;
    int64_t begin;
  };
  std::vector<Chunk> chunks;
  for (const Section &section : sections)
    for (int64_t begin = 0; begin < section.count; begin += kValuesPerChunk)
      chunks.push_back({&section, begin});
  device.threads.parallelFor(
      static_cast<int64_t>(chunks.size()), [&](int64_t i) {
        auto [section, begin] = chunks[static_cast<size_t>(i)];
        function(*section, begin,
                 std::min(begin + kValuesPerChunk, section->count));
      });
}

std::vector<int64_t> bytesOf(const Device &device,
                             std::span<const int64_t> counts) {
  std::vector<int64_t> bytes;
  for (int64_t count : counts)
    bytes.push_back(wireBytes(device, count));
  return bytes;
}

std::vector<int64_t> countsOf(const std::vector<Block> &blocks) {
  std::vector<int64_t> counts;
  for (const Block &block : blocks)
    counts.push_back(block.size);
  return counts;
}

} // namespace

int64_t wireBytes(const Device &device, int64_t count) {
  return count * elementBytes(device.manifest().wireType);
}

void encode(Device &device, std::span<const Outgoing> sections) {
  ElementType type = device.manifest().wireType;
  forRanges(device, sections,
            [&](const Outgoing &section, int64_t begin, int64_t end) {
              storeElements(section.values + begin, end - begin, type,
                            section.to + begin * elementBytes(type));
            });
}

void decode(Device &device, std::span<const Incoming> sections) {
  ElementType type = device.manifest().wireType;
  forRanges(device, sections,
            [&](const Incoming &section, int64_t begin, int64_t end) {
              loadElements(section.from + begin * elementBytes(type),
                           end - begin, type, section.to + begin);
            });
}

Buffer encodeAll(Device &device, BufferKind kind,
                 std::span<const Values> sections) {
  int64_t total = 0;
  for (const Values &section : sections)
    total += section.count;
  Buffer message = device.buffers->acquire(kind, wireBytes(device, total));
  std::byte *to = message.get();
  std::vector<Outgoing> outgoing;
  for (const Values &section : sections) {
    outgoing.push_back({section.first, section.count, to});
    to += wireBytes(device, section.count);
  }
  encode(device, outgoing);
  return message;
}

Buffer encodeBuffer(Device &device, BufferKind kind, const Buffer &values,
                    int64_t count) {
  if (device.manifest().wireType == ElementType::F32)
    return values;
  Values all{as<float>(values), count};
  return encodeAll(device, kind, {&all, 1});
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
startValues(Device &device, Phase phase, const Buffer &encoded,
            std::span<const int64_t> sendCounts,
            std::span<const int64_t> receiveCounts) {
  std::vector<int64_t> sendBytes = bytesOf(device, sendCounts);
  countSentBytes(device, phase, sendBytes);
  return device.communicator->startAllToAll(encoded, sendBytes,
                                            bytesOf(device, receiveCounts));
}

std::vector<const float *> waitValues(Device &device,
                                      CommunicatorRequest &request,
                                      std::span<const MessageSection> sections,
                                      BufferKind kind, Buffer &storage) {
  const auto &messages = request.wait();
  auto from = [&](size_t peer) {
    return messages[peer].data() + wireBytes(device, sections[peer].begin);
  };
  std::vector<const float *> rows;
  if (device.manifest().wireType == ElementType::F32) {
    for (size_t peer = 0; peer < sections.size(); ++peer)
      rows.push_back(reinterpret_cast<const float *>(from(peer)));
    return rows;
  }
  int64_t total = 0;
  for (const MessageSection &section : sections)
    total += section.count;
  storage = device.buffers->acquireArray<float>(kind, total);
  float *next = as<float>(storage);
  std::vector<Incoming> incoming;
  for (size_t peer = 0; peer < sections.size(); ++peer) {
    incoming.push_back({from(peer), sections[peer].count, next});
    rows.push_back(next);
    next += sections[peer].count;
  }
  decode(device, incoming);
  return rows;
}

std::unique_ptr<CommunicatorRequest>
startBlocks(Device &device, Phase phase, BufferKind kind, const Buffer &send,
            const std::vector<Block> &sendBlocks,
            const std::vector<Block> &receiveBlocks) {
  Buffer encoded = encodeBuffer(device, kind, send, totalFloats(sendBlocks));
  return startValues(device, phase, encoded, countsOf(sendBlocks),
                     countsOf(receiveBlocks));
}

} // namespace neuroshard::runtime
