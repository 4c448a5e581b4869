//===- CopyExchange.cpp - Sums of gradients between copies ----------------===//
//
// The message from one copy holder to another has, of each shard that both
// have, the rows, then their sums, each padded to 16 bytes.
//
//===----------------------------------------------------------------------===//

#include "CopyExchange.h"
#include "HeaderExchange.h"
#include "Wire.h"
#include "neuroshard/Artifact/CopyMessage.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace neuroshard::runtime {
namespace {

using Numbers = std::vector<int64_t>;

/// A copied shard of this device.
struct OwnCopy {
  int32_t slot;
  int32_t lookup; ///< some lookup of the slot, whose kernels read the rows.
  std::vector<int32_t> devices;
  int64_t width;
  CopyMessage layout;
};

class CopyExchange {
public:
  explicit CopyExchange(Device &device)
      : device(device), format(rowSumFormat(device.wireType().gradients)) {
    for (int32_t shard : device.plan->summedCopies)
      addOwn(shard);
  }

  CopyMessages run(std::vector<GradientPart> &parts) {
    std::unique_ptr<DistinctSums> sums = sumOwn(parts);
    exchangeNumbers(*sums);
    CopyMessages messages;
    {
      PhaseTimer timer(device.figures, Phase::GradientsExchange);
      messages.request = start(*sums);
      received = waitForAll(*messages.request);
    }
    messages.decoded = addParts(parts);
    return messages;
  }

private:
  void addOwn(int32_t number) {
    const Manifest &manifest = device.manifest();
    const DeviceBinding &binding =
        manifest.bindings[static_cast<size_t>(device.rank())];
    const LookupBinding *lookup = binding.firstLookupOf(number);
    if (!lookup)
      return; // it is on other devices, or nothing reads the table
    const ShardSpec &shard = manifest.shards[static_cast<size_t>(number)];
    OwnCopy &copy = copies.emplace_back();
    copy.slot = lookup->slot;
    copy.lookup = static_cast<int32_t>(lookup - binding.lookups.data());
    copy.devices = shard.devices;
    copy.width = shard.cols.size();
    copy.layout = {device.packedIdBytes(lookup->exchange), copy.width, format};
  }

  const OwnCopy *copyOf(int32_t slot) const {
    auto found = std::ranges::find(copies, slot, &OwnCopy::slot);
    return found == copies.end() ? nullptr : &*found;
  }

  /// Takes the parts of copied shards.
  std::unique_ptr<DistinctSums> sumOwn(std::vector<GradientPart> &parts) {
    PhaseTimer timer(device.figures, Phase::Update);
    std::vector<GradientPart> own;
    auto isOwn = [&](const GradientPart &part) {
      return copyOf(device.program.lookups[static_cast<size_t>(part.lookup)]
                        .slot) != nullptr;
    };
    std::ranges::copy_if(parts, std::back_inserter(own), isOwn);
    std::erase_if(parts, isOwn);
    return device.backend->sumByRow(std::move(own));
  }

  /// Calls function(index of the copy) for those that a peer has, too.
  template <typename Function>
  void forShared(int32_t peer, const Function &function) const {
    for (size_t i = 0; i < copies.size(); ++i)
      if (std::ranges::binary_search(copies[i].devices, peer))
        function(i);
  }

  /// Tells the others how many rows each copy has.
  void exchangeNumbers(const DistinctSums &sums) {
    PhaseTimer timer(device.figures, Phase::GradientsExchange);
    auto ranks = static_cast<size_t>(device.numDevices());
    for (const OwnCopy &copy : copies)
      ownRows.push_back(sums.numRows(copy.slot));
    Numbers message, bytes(ranks);
    for (size_t peer = 0; peer < ranks; ++peer)
      forShared(static_cast<int32_t>(peer), [&](size_t i) {
        message.push_back(ownRows[i]);
        bytes[peer] += static_cast<int64_t>(sizeof(int64_t));
      });
    auto request = device.communicator->startAllToAll(
        MessageKind::CopyNumbers, MessageMemory::Host,
        onHost(device, message.data(), message.size() * sizeof(int64_t)), bytes,
        bytes);
    const auto &texts = request->wait();
    for (size_t peer = 0; peer < ranks; ++peer) {
      Numbers &rows =
          rowsOfPeer.emplace_back(texts[peer].size() / sizeof(int64_t));
      if (!rows.empty())
        std::memcpy(rows.data(), texts[peer].data(), texts[peer].size());
    }
  }

  std::unique_ptr<CommunicatorRequest> start(const DistinctSums &sums) {
    auto ranks = static_cast<size_t>(device.numDevices());
    Numbers sendBytes(ranks), receiveBytes(ranks);
    int64_t total = 0;
    for (size_t peer = 0; peer < ranks; ++peer) {
      size_t number = 0;
      forShared(static_cast<int32_t>(peer), [&](size_t i) {
        const CopyMessage &layout = copies[i].layout;
        sendBytes[peer] += layout.bytes(ownRows[i]);
        receiveBytes[peer] += layout.bytes(rowsOfPeer[peer][number++]);
      });
      total += sendBytes[peer];
    }
    Buffer message = device.buffers->acquire(BufferKind::Gradients, total);
    pack(sums, message.get());
    countSentBytes(device, Phase::GradientsExchange, sendBytes);
    return device.communicator->startAllToAll(
        MessageKind::CopySums, MessageMemory::Device, std::move(message),
        sendBytes, receiveBytes);
  }

  /// Writes what each peer gets, one after the other: rows and sums the first
  /// time, then copies of these.
  void pack(const DistinctSums &sums, std::byte *to) {
    std::vector<const std::byte *> written(copies.size());
    std::vector<RowMove> first, again;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer)
      forShared(peer, [&](size_t i) {
        const OwnCopy &copy = copies[i];
        int64_t bytes = copy.layout.bytes(ownRows[i]);
        if (bytes == 0)
          return;
        if (written[i]) {
          again.push_back(runtime::copyOf(written[i], to, bytes));
        } else {
          sums.writeRows(copy.slot, copy.layout.idBytes, to);
          first.push_back(
              moveOf(reinterpret_cast<const std::byte *>(sums.sums(copy.slot)),
                     WireFormat::F32, to + copy.layout.sums(ownRows[i]), format,
                     copy.layout.values(ownRows[i])));
          written[i] = to;
        }
        to += bytes;
      });
    device.backend->moveRows(first);
    device.backend->moveRows(again);
  }

  /// Adds the parts of each copied shard in the order of its copies. Returns
  /// the sums, if they were rounded on the way.
  Buffer addParts(std::vector<GradientPart> &parts) {
    PhaseTimer timer(device.figures, Phase::Update);
    std::vector<std::vector<GradientPart>> ofCopy(copies.size());
    int64_t values = 0;
    for (size_t peer = 0; peer < rowsOfPeer.size(); ++peer) {
      const std::byte *next = received[peer];
      size_t number = 0;
      forShared(static_cast<int32_t>(peer), [&](size_t i) {
        const OwnCopy &copy = copies[i];
        int64_t rows = rowsOfPeer[peer][number++];
        GradientPart &part = ofCopy[i].emplace_back();
        part.lookup = copy.lookup;
        part.stream = -1 - static_cast<int64_t>(i);
        part.ids.ids = next;
        part.ids.bags = part.ids.numIds = rows;
        part.gradients =
            reinterpret_cast<const float *>(next + copy.layout.sums(rows));
        part.stride = copy.layout.stride();
        next += copy.layout.bytes(rows);
        values += copy.layout.values(rows);
      });
    }
    Buffer decoded =
        format == WireFormat::F32 ? nullptr : decode(ofCopy, values);
    for (std::vector<GradientPart> &own : ofCopy)
      parts.insert(parts.end(), own.begin(), own.end());
    return decoded;
  }

  Buffer decode(std::vector<std::vector<GradientPart>> &ofCopy,
                int64_t values) {
    Buffer decoded =
        device.buffers->acquire(BufferKind::ReceivedGradients,
                                values * static_cast<int64_t>(sizeof(float)));
    auto *next = as<float>(decoded);
    std::vector<RowMove> moves;
    for (size_t i = 0; i < ofCopy.size(); ++i)
      for (GradientPart &part : ofCopy[i]) {
        int64_t count = copies[i].layout.values(part.ids.numIds);
        if (count == 0)
          continue;
        moves.push_back(moveOf(
            reinterpret_cast<const std::byte *>(part.gradients), format,
            reinterpret_cast<std::byte *>(next), WireFormat::F32, count));
        part.gradients = std::exchange(next, next + count);
      }
    device.backend->moveRows(moves);
    return decoded;
  }

  Device &device;
  WireFormat format;           ///< in which sums travel.
  std::vector<OwnCopy> copies; ///< in the order of the plan's shards.
  Numbers ownRows;             ///< by copy.
  /// By rank: rows of the copies that it has, too, in their order.
  std::vector<Numbers> rowsOfPeer;
  std::vector<const std::byte *> received;
};

} // namespace

CopyMessages exchangeCopies(Device &device, std::vector<GradientPart> &parts) {
  if (device.plan->summedCopies.empty())
    return {};
  return CopyExchange(device).run(parts);
}

} // namespace neuroshard::runtime
