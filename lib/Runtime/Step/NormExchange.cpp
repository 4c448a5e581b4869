//===- NormExchange.cpp - Norms of gradients over all columns -------------===//
//
// Column shards of the same rows receive the same ids. So they have the same
// distinct rows where their row ranges overlap, and norms travel without row
// numbers.
//
//===----------------------------------------------------------------------===//

#include "NormExchange.h"
#include "Exchange/Wire.h"

#include <algorithm>
#include <cstring>

namespace neuroshard::runtime {
namespace {

/// The norms over one shard's columns of consecutive distinct rows of a slot.
struct Contribution {
  int64_t firstCol;
  Range distinctRows; ///< of the receiving slot.
  const float *norms;
};

class NormExchange {
public:
  NormExchange(Device &device, std::span<SlotUpdate> slots)
      : device(device), manifest(device.manifest()),
        updates(device.slots.size()), totals(device.slots.size()),
        contributions(device.slots.size()) {
    for (SlotUpdate &slot : slots)
      updates[slot.slot] = &slot;
  }

  void run() {
    addOwn();
    std::unique_ptr<CommunicatorRequest> request;
    if (device.numDevices() > 1) {
      request = start();
      receive(*request);
    }
    for (size_t slot = 0; slot < updates.size(); ++slot)
      if (!contributions[slot].empty())
        sum(slot);
    // Only after all sums are done, since they read these norms.
    for (size_t slot = 0; slot < updates.size(); ++slot)
      if (totals[slot])
        updates[slot]->norms = totals[slot];
  }

private:
  const ShardSpec &shardOf(int32_t rank, size_t slot) const {
    return manifest
        .shards[manifest.bindings[static_cast<size_t>(rank)].slots[slot]];
  }

  /// Whether two shards exchange norms.
  bool meet(const ShardSpec &a, const ShardSpec &b) const {
    return a.table == b.table && a.rows.overlaps(b.rows) &&
           device.plan->needsNormExchange[static_cast<size_t>(a.table)];
  }

  /// The distinct rows of this device's `slot` that lie in table rows `rows`.
  Range section(size_t slot, const Range &rows) const {
    if (!updates[slot])
      return {0, 0};
    const SortedRows &sorted = *updates[slot]->sorted;
    const auto *first = as<const int64_t>(sorted.rows);
    const auto *last = first + sorted.numRows;
    int64_t offset = device.slots[slot].spec().rows.begin;
    return {std::lower_bound(first, last, rows.begin - offset) - first,
            std::lower_bound(first, last, rows.end - offset) - first};
  }

  /// Calls function(own slot, the peer's shard) for all shards of this device
  /// and the peer that share rows, by the sender's slot, then the receiver's.
  template <typename Function>
  void forMeetings(int32_t peer, bool peerSends, const Function &function) {
    size_t own = device.slots.size();
    size_t others = manifest.bindings[static_cast<size_t>(peer)].slots.size();
    size_t outer = peerSends ? others : own;
    size_t inner = peerSends ? own : others;
    for (size_t i = 0; i < outer; ++i)
      for (size_t j = 0; j < inner; ++j) {
        size_t slot = peerSends ? j : i;
        const ShardSpec &other = shardOf(peer, peerSends ? i : j);
        if (meet(device.slots[slot].spec(), other))
          function(slot, other);
      }
  }

  void addOwn() {
    for (size_t from = 0; from < updates.size(); ++from)
      for (size_t to = 0; to < updates.size(); ++to) {
        const ShardSpec &source = device.slots[from].spec();
        const ShardSpec &target = device.slots[to].spec();
        if (!updates[from] || !updates[to] || !meet(source, target))
          continue;
        Range rows = section(from, target.rows);
        contributions[to].push_back(
            {source.cols.begin, section(to, source.rows),
             as<const float>(updates[from]->norms) + rows.begin});
      }
  }

  std::unique_ptr<CommunicatorRequest> start() {
    std::vector<int64_t> sendBytes(static_cast<size_t>(device.numDevices()));
    std::vector<int64_t> receiveBytes(static_cast<size_t>(device.numDevices()));
    std::vector<std::pair<const float *, int64_t>> sections;
    int64_t total = 0;
    for (int32_t peer = 0; peer < device.numDevices(); ++peer) {
      if (peer == device.rank())
        continue;
      forMeetings(peer, false, [&](size_t slot, const ShardSpec &other) {
        Range rows = section(slot, other.rows);
        if (rows.size() == 0)
          return;
        sections.push_back(
            {as<const float>(updates[slot]->norms) + rows.begin, rows.size()});
        sendBytes[static_cast<size_t>(peer)] +=
            rows.size() * static_cast<int64_t>(sizeof(float));
        total += rows.size();
      });
      forMeetings(peer, true, [&](size_t slot, const ShardSpec &other) {
        receiveBytes[static_cast<size_t>(peer)] +=
            section(slot, other.rows).size() *
            static_cast<int64_t>(sizeof(float));
      });
    }
    Buffer send = device.buffers->acquireArray<float>(BufferKind::Norms, total);
    float *out = as<float>(send);
    for (auto [norms, count] : sections)
      out = std::copy_n(norms, count, out);
    countSentBytes(device, Phase::NormExchange, sendBytes);
    return device.communicator->startAllToAll(send, sendBytes, receiveBytes);
  }

  void receive(CommunicatorRequest &request) {
    const auto &messages = request.wait();
    for (int32_t peer = 0; peer < device.numDevices(); ++peer) {
      if (peer == device.rank())
        continue;
      auto *next = reinterpret_cast<const float *>(
          messages[static_cast<size_t>(peer)].data());
      forMeetings(peer, true, [&](size_t slot, const ShardSpec &other) {
        Range rows = section(slot, other.rows);
        if (rows.size() == 0)
          return;
        contributions[slot].push_back({other.cols.begin, rows, next});
        next += rows.size();
      });
    }
  }

  /// Adds norms in column order. Shards from column 0 have every row once.
  void sum(size_t slot) {
    std::vector<Contribution> &terms = contributions[slot];
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Contribution &a, const Contribution &b) {
                       return a.firstCol < b.firstCol;
                     });
    int64_t rows = updates[slot]->sorted->numRows;
    totals[slot] = device.buffers->acquireArray<float>(BufferKind::Norms, rows);
    float *total = as<float>(totals[slot]);
    std::fill_n(total, rows, 0.0f);
    for (const Contribution &term : terms)
      for (int64_t i = 0; i < term.distinctRows.size(); ++i)
        total[term.distinctRows.begin + i] += term.norms[i];
  }

  Device &device;
  const Manifest &manifest;
  std::vector<SlotUpdate *> updates; ///< per slot; null without ids.
  std::vector<Buffer> totals;
  std::vector<std::vector<Contribution>> contributions;
};

} // namespace

void exchangeNorms(Device &device, std::span<SlotUpdate> slots) {
  PhaseTimer timer(device.figures, Phase::NormExchange);
  NormExchange(device, slots).run();
}

} // namespace neuroshard::runtime
