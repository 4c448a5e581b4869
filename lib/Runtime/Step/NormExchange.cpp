//===- NormExchange.cpp - Norms of rows over all columns ------------------===//
//
// Column shards of the same rows receive the same ids. So they have the same
// distinct rows where their row ranges overlap, and norms travel without row
// numbers. Of a shard with copies, each serves some devices, as in a lookup.
//
//===----------------------------------------------------------------------===//

#include "NormExchange.h"
#include "Exchange/Wire.h"
#include "neuroshard/Artifact/CopyReaders.h"

#include <algorithm>
#include <utility>

namespace neuroshard::runtime {
namespace {

class NormExchange {
public:
  NormExchange(Device &device, const Update &update)
      : device(device), manifest(device.manifest()), update(update) {}

  NormMessages run() {
    addOwn();
    NormMessages result;
    if (device.numDevices() > 1) {
      result.request = start();
      receive(*result.request);
    }
    // Shards from column 0 have every row once.
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Contribution &a, const Contribution &b) {
                       return a.firstCol < b.firstCol;
                     });
    for (const Contribution &term : terms)
      result.terms.push_back(term.norms);
    return result;
  }

private:
  /// The norms over one shard's columns of consecutive distinct rows of a slot.
  struct Contribution {
    int64_t firstCol;
    NormTerm norms;
  };

  const ShardSpec &shardOf(int32_t rank, size_t slot) const {
    return manifest
        .shards[manifest.bindings[static_cast<size_t>(rank)].slots[slot]];
  }

  /// Whether a device gets norms of `from`, which another one has, for `to`.
  bool gets(int32_t receiver, const ShardSpec &to, int32_t sender,
            const ShardSpec &from) const {
    return from.table == to.table && from.rows.overlaps(to.rows) &&
           device.plan->needsNormExchange[static_cast<size_t>(to.table)] &&
           (!from.hasCopies() ||
            nearestCopy(device.plan->groups, from.devices, receiver) == sender);
  }

  /// The distinct rows of this device's `slot` that lie in table rows `rows`.
  Range section(size_t slot, const Range &rows) const {
    const ShardSpec &shard = device.slots[slot].spec();
    int64_t offset = shard.rows.begin;
    // Copies have other ids than shards without: the rows of all copies.
    bool hasCopies = device.plan->hasCopies[static_cast<size_t>(shard.table)];
    return update.distinctRows(static_cast<int32_t>(slot),
                               {rows.begin - offset, rows.end - offset},
                               hasCopies ? RowNumber::Exact : RowNumber::Bound);
  }

  int64_t perRow(size_t slot) const {
    return device.slots[slot].table().normsPerRow();
  }

  /// How many those of some rows are.
  int64_t count(size_t slot, const Range &rows) const {
    return rows.size() * perRow(slot);
  }

  const float *normsOf(size_t slot, const Range &rows) const {
    return update.norms(static_cast<int32_t>(slot)) + rows.begin * perRow(slot);
  }

  void addTerm(int64_t firstCol, size_t slot, const Range &rows,
               const float *norms) {
    terms.push_back({firstCol, {static_cast<int32_t>(slot), rows, norms}});
  }

  /// Calls function(own slot, the peer's shard) for all shards of this device
  /// and the peer that share rows, by the sender's slot, then the receiver's.
  template <typename Function>
  void forMeetings(int32_t peer, bool peerSends,
                   const Function &function) const {
    size_t owned = device.slots.size();
    size_t others = manifest.bindings[static_cast<size_t>(peer)].slots.size();
    size_t outer = peerSends ? others : owned;
    size_t inner = peerSends ? owned : others;
    for (size_t i = 0; i < outer; ++i)
      for (size_t j = 0; j < inner; ++j) {
        size_t slot = peerSends ? j : i;
        const ShardSpec &own = device.slots[slot].spec();
        const ShardSpec &other = shardOf(peer, peerSends ? i : j);
        if (peerSends ? gets(device.rank(), own, peer, other)
                      : gets(peer, other, device.rank(), own))
          function(slot, other);
      }
  }

  void addOwn() {
    for (size_t from = 0; from < device.slots.size(); ++from)
      for (size_t to = 0; to < device.slots.size(); ++to) {
        const ShardSpec &source = device.slots[from].spec();
        const ShardSpec &target = device.slots[to].spec();
        if (!gets(device.rank(), target, device.rank(), source))
          continue;
        Range rows = section(from, target.rows);
        if (rows.size() > 0)
          addTerm(source.cols.begin, to, section(to, source.rows),
                  normsOf(from, rows));
      }
  }

  std::unique_ptr<CommunicatorRequest> start() {
    constexpr int64_t kNormBytes = sizeof(float);
    std::vector<int64_t> sendBytes(static_cast<size_t>(device.numDevices()));
    std::vector<int64_t> receiveBytes(static_cast<size_t>(device.numDevices()));
    std::vector<std::pair<const float *, int64_t>> sections;
    int64_t total = 0;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer) {
      if (peer == device.rank())
        continue;
      auto index = static_cast<size_t>(peer);
      forMeetings(peer, false, [&](size_t slot, const ShardSpec &other) {
        Range rows = section(slot, other.rows);
        if (rows.size() == 0)
          return;
        int64_t norms = count(slot, rows);
        sections.push_back({normsOf(slot, rows), norms});
        sendBytes[index] += norms * kNormBytes;
        total += norms;
      });
      forMeetings(peer, true, [&](size_t slot, const ShardSpec &other) {
        receiveBytes[index] +=
            count(slot, section(slot, other.rows)) * kNormBytes;
      });
    }
    countSentBytes(device, Phase::NormExchange, sendBytes);
    return device.communicator->startAllToAll(
        MessageKind::Norms, MessageMemory::Device, pack(sections, total),
        sendBytes, receiveBytes);
  }

  Buffer pack(const std::vector<std::pair<const float *, int64_t>> &sections,
              int64_t total) {
    Buffer message = device.buffers->acquire(
        BufferKind::Norms, total * static_cast<int64_t>(sizeof(float)));
    std::byte *to = message.get();
    std::vector<RowMove> moves;
    for (auto [norms, count] : sections) {
      int64_t bytes = count * static_cast<int64_t>(sizeof(float));
      moves.push_back(
          copyOf(reinterpret_cast<const std::byte *>(norms), to, bytes));
      to += bytes;
    }
    device.backend->moveRows(moves);
    return message;
  }

  void receive(CommunicatorRequest &request) {
    std::vector<const std::byte *> messages = waitForAll(request);
    for (int32_t peer = 0; peer < device.numDevices(); ++peer) {
      if (peer == device.rank())
        continue;
      auto *next =
          reinterpret_cast<const float *>(messages[static_cast<size_t>(peer)]);
      forMeetings(peer, true, [&](size_t slot, const ShardSpec &other) {
        Range rows = section(slot, other.rows);
        if (rows.size() == 0)
          return;
        addTerm(other.cols.begin, slot, rows, next);
        next += count(slot, rows);
      });
    }
  }

  Device &device;
  const Manifest &manifest;
  const Update &update;
  std::vector<Contribution> terms;
};

} // namespace

NormMessages exchangeNorms(Device &device, const Update &update) {
  PhaseTimer timer(device.figures, Phase::NormExchange);
  return NormExchange(device, update).run();
}

} // namespace neuroshard::runtime
