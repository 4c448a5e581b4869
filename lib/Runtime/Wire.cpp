//===- Wire.cpp - Values as they travel between devices -------------------===//
//
// Values of type f32 travel from and to the place where kernels need them;
// others pass through one buffer on each side.
//
//===----------------------------------------------------------------------===//

#include "Wire.h"
#include "Numerics.h"
#include "Steps.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

/// Calls function(part, begin, end) in parallel on ranges of the values of all
/// parts.
template <typename Part, typename Function>
void forRanges(Device &device, std::span<const Part> parts,
               const Function &function) {
  constexpr int64_t valuesPerChunk = 1 << 15;
  struct Chunk {
    const Part *part;
    int64_t begin;
  };
  std::vector<Chunk> chunks;
  for (const Part &part : parts)
    for (int64_t begin = 0; begin < part.count; begin += valuesPerChunk)
      chunks.push_back({&part, begin});
  device.threads.parallelFor(int64_t(chunks.size()), [&](int64_t i) {
    auto [part, begin] = chunks[size_t(i)];
    function(*part, begin, std::min(begin + valuesPerChunk, part->count));
  });
}

std::vector<int64_t> bytesOf(const Device &device,
                             const std::vector<Block> &blocks) {
  std::vector<int64_t> bytes;
  for (const Block &block : blocks)
    bytes.push_back(wireBytes(device, block.size));
  return bytes;
}

} // namespace

int64_t wireBytes(const Device &device, int64_t count) {
  return count * elementBytes(device.manifest().wireType);
}

void encode(Device &device, std::span<const Outgoing> parts) {
  ElementType type = device.manifest().wireType;
  forRanges(device, parts,
            [&](const Outgoing &part, int64_t begin, int64_t end) {
              storeElements(part.values + begin, end - begin, type,
                            part.to + begin * elementBytes(type));
            });
}

void decode(Device &device, std::span<const Incoming> parts) {
  ElementType type = device.manifest().wireType;
  forRanges(device, parts,
            [&](const Incoming &part, int64_t begin, int64_t end) {
              loadElements(part.from + begin * elementBytes(type), end - begin,
                           type, part.to + begin);
            });
}

std::unique_ptr<CommunicatorRequest>
startBlocks(Device &device, Phase phase, const Buffer &send,
            const std::vector<Block> &sendBlocks,
            const std::vector<Block> &receiveBlocks) {
  std::vector<int64_t> sendBytes = bytesOf(device, sendBlocks);
  Buffer encoded = send;
  if (device.manifest().wireType != ElementType::F32) {
    int64_t floats = totalFloats(sendBlocks);
    encoded = device.buffers->acquire(wireBytes(device, floats));
    Outgoing all{as<float>(send), floats, encoded.get()};
    encode(device, {&all, 1});
  }
  countSentBytes(device, phase, sendBytes);
  return device.communicator->startAllToAll(encoded, sendBytes,
                                            bytesOf(device, receiveBlocks));
}

std::vector<const float *> waitBlocks(Device &device,
                                      CommunicatorRequest &request,
                                      const std::vector<Block> &blocks,
                                      Buffer &storage) {
  const auto &messages = request.wait();
  std::vector<const float *> rows;
  if (device.manifest().wireType == ElementType::F32) {
    for (const auto &message : messages)
      rows.push_back(reinterpret_cast<const float *>(message.data()));
    return rows;
  }
  storage = device.buffers->acquireArray<float>(totalFloats(blocks));
  float *next = as<float>(storage);
  std::vector<Incoming> parts;
  for (size_t peer = 0; peer < blocks.size(); ++peer) {
    parts.push_back({messages[peer].data(), blocks[peer].size, next});
    rows.push_back(next);
    next += blocks[peer].size;
  }
  decode(device, parts);
  return rows;
}

} // namespace neuroshard::runtime
