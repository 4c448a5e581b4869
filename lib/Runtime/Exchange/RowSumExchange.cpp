//===- RowSumExchange.cpp - All-reduce of gradients by row ----------------===//
//
// Reduce-scatters level by level and all-gathers back, since a rank must add
// what its peers have in their order: then every copy of a table gets the same
// bits. Sums are added in f32 and rounded to the wire format before each
// reduce-scatter, and the totals.
//
//===----------------------------------------------------------------------===//

#include "RowSumExchange.h"
#include "Wire.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

/// The all-reduce of one exchange's sums.
class RowSumReducer {
public:
  RowSumReducer(Device &device, Partials &gradients)
      : device(device), gradients(gradients),
        format(rowSumFormat(device.wireType().gradients)),
        levels(reduceLevels(device.plan->groups, device.rank(),
                            gradients.replicas.numSums)) {}

  void start() { startSums(levels.front(), packSums()); }

  /// Exchanges whose end is not waited for: sums level by level, then the
  /// totals back.
  size_t numLeft() const {
    return 2 * levels.size() - gradients.numSumExchanges;
  }

  /// Waits for the exchange under way and starts the next one, if any.
  void proceed() {
    size_t done = gradients.numSumExchanges++;
    if (done < levels.size())
      addUp(done);
    else
      join(2 * levels.size() - 1 - done);
  }

private:
  /// After the sums of a level, those of the next or the totals.
  void addUp(size_t level) {
    Buffer part = addSections(levels[level]);
    if (level + 1 < levels.size())
      startSums(levels[level + 1], std::move(part));
    else
      startTotals(levels[level], part);
  }

  /// After the totals of a level, those of the one before.
  void join(size_t level) {
    if (level == 0) {
      gradients.rowSums = joinSections(
          levels[level], BufferKind::ReceivedGradients, WireFormat::F32);
      return;
    }
    startTotals(levels[level - 1],
                joinSections(levels[level], BufferKind::Gradients, format));
  }

  int64_t bytesOf(int64_t values) const { return values * valueBytes(format); }

  /// The sums in the format in which they travel.
  Buffer packSums() {
    if (format == WireFormat::F32)
      return gradients.rowSums;
    int64_t count = gradients.replicas.numSums;
    Buffer message =
        device.buffers->acquire(BufferKind::Gradients, bytesOf(count));
    RowMove move = moveOf(gradients.rowSums.get(), WireFormat::F32,
                          message.get(), format, count);
    device.backend->moveRows({&move, 1});
    return message;
  }

  /// `bytes(peer)` for the ranks of a level, 0 for the others.
  template <typename Bytes>
  std::vector<int64_t> bytesOfRanks(const ReduceLevel &level,
                                    const Bytes &bytes) const {
    std::vector<int64_t> all(static_cast<size_t>(device.numDevices()));
    for (size_t peer = 0; peer < level.peers.size(); ++peer)
      all[static_cast<size_t>(level.peers[peer])] = bytes(peer);
    return all;
  }

  /// Sends each peer its section of `sums`, those of the level.
  void startSums(const ReduceLevel &level, Buffer sums) {
    std::vector<int64_t> send = bytesOfRanks(level, [&](size_t peer) {
      return bytesOf(level.section(peer).size());
    });
    std::vector<int64_t> receive = bytesOfRanks(
        level, [&](size_t) { return bytesOf(level.ownSection().size()); });
    countSentBytes(device, Phase::GradientsExchange, send);
    gradients.sumsRequest = device.communicator->startAllToAll(
        MessageKind::RowSums, MessageMemory::Device, std::move(sums), send,
        receive);
  }

  /// Adds up what the peers have of this rank's section, in their order.
  Buffer addSections(const ReduceLevel &level) {
    int64_t count = level.ownSection().size();
    Buffer total =
        device.buffers->acquire(BufferKind::Gradients, bytesOf(count));
    std::vector<const std::byte *> sections =
        waitForAll(*gradients.sumsRequest);
    auto sectionOf = [&](size_t peer) {
      return sections[static_cast<size_t>(level.peers[peer])];
    };
    RowMove move = moveOf(sectionOf(0), format, total.get(), format, count);
    for (size_t peer = 1; peer < level.peers.size(); ++peer)
      move.addends.push_back({sectionOf(peer), count});
    device.backend->moveRows({&move, 1});
    return total;
  }

  /// Puts the sections of the peers side by side.
  Buffer joinSections(const ReduceLevel &level, BufferKind kind,
                      WireFormat target) {
    std::vector<const std::byte *> sections =
        waitForAll(*gradients.sumsRequest);
    Buffer totals =
        device.buffers->acquire(kind, level.sums.size() * valueBytes(target));
    std::vector<RowMove> moves;
    for (size_t peer = 0; peer < level.peers.size(); ++peer) {
      Range section = level.section(peer);
      std::byte *to = totals.get() +
                      (section.begin - level.sums.begin) * valueBytes(target);
      moves.push_back(moveOf(sections[static_cast<size_t>(level.peers[peer])],
                             format, to, target, section.size()));
    }
    device.backend->moveRows(moves);
    return totals;
  }

  /// Sends this rank's section to the peers.
  void startTotals(const ReduceLevel &level, const Buffer &own) {
    int64_t bytes = bytesOf(level.ownSection().size());
    std::vector<int64_t> receive = bytesOfRanks(level, [&](size_t peer) {
      return bytesOf(level.section(peer).size());
    });
    std::vector<int64_t> send =
        bytesOfRanks(level, [&](size_t) { return bytes; });
    countSentBytes(device, Phase::GradientsExchange, send);
    if (levels.size() == 1) {
      gradients.sumsRequest = device.communicator->startAllGather(
          MessageKind::RowTotals, MessageMemory::Device, own, bytes, receive);
      return;
    }
    gradients.sumsRequest = device.communicator->startAllToAll(
        MessageKind::RowTotals, MessageMemory::Device,
        repeat(own, level.peers.size(), bytes), send, receive);
  }

  /// The message to each of the peers, as they come from one buffer.
  Buffer repeat(const Buffer &own, size_t peers, int64_t bytes) {
    Buffer message = device.buffers->acquire(
        BufferKind::Gradients, static_cast<int64_t>(peers) * bytes);
    std::vector<RowMove> moves;
    for (size_t peer = 0; peer < peers; ++peer) {
      std::byte *to = message.get() + static_cast<int64_t>(peer) * bytes;
      moves.push_back(
          moveOf(own.get(), format, to, format, bytes / valueBytes(format)));
    }
    device.backend->moveRows(moves);
    return message;
  }

  Device &device;
  Partials &gradients;
  WireFormat format; ///< in which sums travel.
  std::vector<ReduceLevel> levels;
};

} // namespace

std::vector<SlotSums> slotSumsOf(const Partials &gradients) {
  std::vector<SlotSums> sums;
  auto *first = as<float>(gradients.rowSums);
  for (const RowSums &table : gradients.replicas.tables)
    sums.push_back({table.slot, table.rows, first + table.firstValue,
                    table.stride, first + table.firstCount});
  return sums;
}

void addUpSteps(Device &device, std::span<Partials *const> steps) {
  if (steps.size() <= 1)
    return;
  PhaseTimer timer(device.figures, Phase::Update);
  Partials &first = *steps.front();
  int64_t count = first.replicas.numSums;
  Buffer total =
      device.buffers->acquire(BufferKind::ReceivedGradients,
                              count * static_cast<int64_t>(sizeof(float)));
  RowMove move = moveOf(first.rowSums.get(), WireFormat::F32, total.get(),
                        WireFormat::F32, count);
  for (Partials *step : steps.subspan(1))
    move.addends.push_back({step->rowSums.get(), count});
  device.backend->moveRows({&move, 1});
  first.rowSums = std::move(total);
}

void addUpRows(Device &device, const Routed &routed, Partials &gradients) {
  const ReplicaUpdate &replicas = gradients.replicas;
  if (replicas.tables.empty())
    return;
  PhaseTimer timer(device.figures, Phase::Update);
  int64_t bytes = replicas.numSums * static_cast<int64_t>(sizeof(float));
  gradients.rowSums = device.buffers->acquire(BufferKind::Gradients, bytes);
  device.backend->clear(gradients.rowSums.get(), bytes);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  const StreamSet &local = device.gradientLayout(routed).locals[device.rank()];
  std::vector<GradientPart> parts;
  for (int32_t index : replicas.summed.entries) {
    const EntryLayout &entry = local.entries[static_cast<size_t>(index)];
    const LocalRows &rows = gradients.localRows[static_cast<size_t>(index)];
    parts.push_back(
        {entry.kernel, entry.stream,
         routed.local.streams[static_cast<size_t>(entry.stream)][0],
         reinterpret_cast<const float *>(rows.first), rows.stride,
         spec.lookups[static_cast<size_t>(entry.lookup)].paddingIdx});
  }
  device.backend->addUpRows(std::move(parts), slotSumsOf(gradients));
}

void startRowSums(Device &device, Partials &gradients) {
  RowSumReducer(device, gradients).start();
}

void continueRowSums(Device &device, Partials &gradients) {
  if (gradients.replicas.tables.empty())
    return;
  RowSumReducer reducer(device, gradients);
  if (reducer.numLeft() <= 1)
    return;
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  reducer.proceed();
}

void receiveRowSums(Device &device, Partials &gradients) {
  PhaseTimer timer(device.figures, Phase::GradientsExchange);
  RowSumReducer reducer(device, gradients);
  while (reducer.numLeft() > 0)
    reducer.proceed();
}

} // namespace neuroshard::runtime
