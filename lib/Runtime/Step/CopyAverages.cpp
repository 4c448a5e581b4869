//===- CopyAverages.cpp - Averages copies that drift ----------------------===//
//
// In each round a copy gets its part of the rows from all copies, averages it
// and sends it to all: a reduce-scatter and an all-gather over the copies of
// each shard, of all shards of the round in one message to each peer.
//
//===----------------------------------------------------------------------===//

#include "CopyAverages.h"

#include "Exchange/Wire.h"
#include "neuroshard/Artifact/CopyAverages.h"
#include "neuroshard/Artifact/Error.h"

#include <algorithm>

namespace neuroshard::runtime {
namespace {

using Numbers = std::vector<int64_t>;

/// Rows of a shard of this device.
struct OwnRows {
  AveragedRows rows;
  const Shard *shard;
  std::vector<AveragedArray> arrays;
  size_t copy; ///< this device's number among the copies.

  const std::vector<int32_t> &devices() const { return shard->spec().devices; }
  /// The number of a peer's copy; that of all if it has none.
  size_t numberOfCopy(int32_t peer) const {
    auto found = std::ranges::lower_bound(devices(), peer);
    return found != devices().end() && *found == peer
               ? static_cast<size_t>(found - devices().begin())
               : devices().size();
  }
  bool isOn(int32_t peer) const {
    return numberOfCopy(peer) < devices().size();
  }
  int64_t bytesOf(size_t part) const {
    return averagedBytes(arrays, rows.part(part).size());
  }
  /// The first of some rows of an array.
  std::byte *place(size_t array, const Range &of) const {
    std::byte *first =
        array == 0 ? shard->weights()
                   : reinterpret_cast<std::byte *>(shard->state(array - 1));
    return first + of.begin * arrays[array].rowBytes;
  }
};

class AveragedTogether {
public:
  AveragedTogether(Device &device, const AverageRound &round) : device(device) {
    for (const AveragedRows &rows : round)
      addOwn(rows);
  }

  void run() {
    Numbers parts = bytesOfPeers(
        [](const OwnRows &rows, size_t peer) { return rows.bytesOf(peer); });
    Numbers averages = bytesOfPeers(
        [](const OwnRows &rows, size_t) { return rows.bytesOf(rows.copy); });
    auto partsRequest =
        start(MessageKind::CopyParts, packParts(parts), parts, averages);
    Buffer message = average(waitFor(*partsRequest), averages);
    auto averagesRequest =
        start(MessageKind::CopyAverages, std::move(message), averages, parts);
    write(waitFor(*averagesRequest));
  }

private:
  void addOwn(const AveragedRows &rows) {
    const std::vector<int32_t> &slots =
        device.manifest().bindings[static_cast<size_t>(device.rank())].slots;
    auto slot = std::ranges::find(slots, rows.shard);
    if (slot == slots.end())
      return;
    const Shard &shard =
        device.slots[static_cast<size_t>(slot - slots.begin())];
    OwnRows &one = own.emplace_back(OwnRows{
        rows, &shard, averagedArrays(device.manifest(), shard.spec()), 0});
    one.copy = one.numberOfCopy(device.rank());
  }

  /// Calls function(rows, number of the peer's copy) for those that it has.
  template <typename Function>
  void forShared(int32_t peer, const Function &function) const {
    for (const OwnRows &rows : own)
      if (size_t copy = rows.numberOfCopy(peer); copy < rows.devices().size())
        function(rows, copy);
  }

  template <typename Bytes> Numbers bytesOfPeers(const Bytes &bytesOf) const {
    Numbers bytes(static_cast<size_t>(device.numDevices()));
    for (int32_t peer = 0; peer < device.numDevices(); ++peer)
      forShared(peer, [&](const OwnRows &rows, size_t copy) {
        bytes[static_cast<size_t>(peer)] += bytesOf(rows, copy);
      });
    return bytes;
  }

  Buffer acquire(const Numbers &bytes) {
    int64_t total = 0;
    for (int64_t one : bytes)
      total += one;
    return device.buffers->acquire(BufferKind::Averages, total);
  }

  std::unique_ptr<CommunicatorRequest> start(MessageKind kind, Buffer message,
                                             const Numbers &send,
                                             const Numbers &receive) {
    countSentBytes(device, Phase::GradientsExchange, send);
    return device.communicator->startAllToAll(
        kind, MessageMemory::Device, std::move(message), send, receive);
  }

  std::vector<const std::byte *> waitFor(CommunicatorRequest &request) {
    PhaseTimer timer(device.figures, Phase::GradientsExchange);
    return waitForAll(request);
  }

  /// What each peer averages.
  Buffer packParts(const Numbers &bytes) {
    PhaseTimer timer(device.figures, Phase::Update);
    Buffer message = acquire(bytes);
    std::byte *to = message.get();
    std::vector<RowMove> moves;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer)
      forShared(peer, [&](const OwnRows &rows, size_t copy) {
        Range part = rows.rows.part(copy);
        for (size_t i = 0; i < rows.arrays.size(); ++i) {
          const AveragedArray &array = rows.arrays[i];
          addMove(moves, rows.place(i, part), to, part, array);
          to += array.bytes(part.size());
        }
      });
    device.backend->moveRows(moves);
    return message;
  }

  static int64_t valuesOf(const Range &rows, const AveragedArray &array) {
    return rows.size() * array.rowBytes / valueBytes(array.format);
  }

  static RowMove *addMove(std::vector<RowMove> &moves, const std::byte *from,
                          std::byte *to, const Range &rows,
                          const AveragedArray &array) {
    if (rows.size() == 0)
      return nullptr;
    moves.push_back(
        moveOf(from, array.format, to, array.format, valuesOf(rows, array)));
    return &moves.back();
  }

  /// Averages this device's parts, into the message to the first copy of each,
  /// and copies them for the others.
  Buffer average(std::vector<const std::byte *> received,
                 const Numbers &bytes) {
    PhaseTimer timer(device.figures, Phase::Update);
    Buffer message = acquire(bytes);
    std::byte *to = message.get();
    std::vector<std::byte *> first(own.size());
    std::vector<RowMove> sums, copies;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer)
      for (size_t i = 0; i < own.size(); ++i) {
        int64_t size = own[i].bytesOf(own[i].copy);
        if (size == 0 || !own[i].isOn(peer))
          continue;
        if (first[i])
          copies.push_back(copyOf(first[i], to, size));
        else
          first[i] = to;
        to += size;
      }
    // In the order in which copies have sent them.
    for (size_t i = 0; i < own.size(); ++i)
      if (first[i])
        addSums(own[i], received, first[i], sums);
    device.backend->moveRows(sums);
    device.backend->moveRows(copies);
    return message;
  }

  /// Takes the rows from what the copies have sent.
  void addSums(const OwnRows &rows, std::vector<const std::byte *> &received,
               std::byte *to, std::vector<RowMove> &sums) const {
    Range part = rows.rows.part(rows.copy);
    for (const AveragedArray &array : rows.arrays) {
      RowMove *sum = nullptr;
      for (int32_t peer : rows.devices()) {
        const std::byte *&from = received[static_cast<size_t>(peer)];
        if (sum)
          sum->addends.push_back({from, valuesOf(part, array)});
        else
          sum = addMove(sums, from, to, part, array);
        from += array.bytes(part.size());
      }
      sum->scale = 1.0f / static_cast<float>(rows.devices().size());
      to += array.bytes(part.size());
    }
  }

  void write(std::vector<const std::byte *> received) {
    PhaseTimer timer(device.figures, Phase::Update);
    std::vector<RowMove> moves;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer) {
      const std::byte *from = received[static_cast<size_t>(peer)];
      forShared(peer, [&](const OwnRows &rows, size_t copy) {
        Range part = rows.rows.part(copy);
        for (size_t i = 0; i < rows.arrays.size(); ++i) {
          addMove(moves, from, rows.place(i, part), part, rows.arrays[i]);
          from += rows.arrays[i].bytes(part.size());
        }
      });
    }
    device.backend->moveRows(moves);
  }

  Device &device;
  std::vector<OwnRows> own; ///< in the order of the round.
};

} // namespace

void requireNoCapture(const Device &device) {
  if (!device.plan->driftingCopies.empty() && device.backend->isCapturing())
    fail("copies that drift (sync_every) are averaged in some steps and not in "
         "others, so that updates cannot be captured into a CUDA graph; plan "
         "without sync_every, or do not capture");
}

void averageCopies(Device &device, const std::vector<int32_t> &shards) {
  for (const AverageRound &round : averageRounds(device.manifest(), shards))
    AveragedTogether(device, round).run();
}

} // namespace neuroshard::runtime
