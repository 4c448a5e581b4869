//===- RowSumExchange.cpp - All-reduce of gradients by row ----------------===//
//
// A reduce-scatter and an all-gather, since a rank must add what all ranks have
// in their order: then every copy of a table gets the same bits. Sums are added
// in f32 and rounded to the wire type once before each of the two.
//
//===----------------------------------------------------------------------===//

#include "RowSumExchange.h"
#include "Wire.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

Buffer acquireSums(Device &device, BufferKind kind, int64_t values) {
  return device.buffers->acquire(kind,
                                 values * static_cast<int64_t>(sizeof(float)));
}

/// How many sums each rank adds up.
std::vector<int64_t> sectionSizes(const Device &device,
                                  const ReplicaUpdate &replicas) {
  auto ranks = static_cast<size_t>(device.numDevices());
  std::vector<int64_t> sizes;
  for (size_t rank = 0; rank < ranks; ++rank)
    sizes.push_back(replicas.section(rank, ranks).size());
  return sizes;
}

/// The sums in the type in which they travel.
Buffer packSums(Device &device, const Partials &gradients) {
  ElementType type = device.wireType().gradients;
  if (type == ElementType::F32)
    return gradients.rowSums;
  int64_t count = gradients.replicas.numSums;
  Buffer message = device.buffers->acquire(BufferKind::Gradients,
                                           gradientBytes(device, count));
  RowMove move = moveOf(gradients.rowSums.get(), ElementType::F32,
                        message.get(), type, count);
  device.backend->moveRows({&move, 1});
  return message;
}

/// Adds up what all ranks have of this rank's section, in their order.
Buffer addSections(Device &device, CommunicatorRequest &request,
                   int64_t count) {
  Buffer totals = device.buffers->acquire(BufferKind::Gradients,
                                          gradientBytes(device, count));
  std::vector<const std::byte *> sections = waitForAll(request);
  ElementType type = device.wireType().gradients;
  RowMove move = moveOf(sections[0], type, totals.get(), type, count);
  for (size_t rank = 1; rank < sections.size(); ++rank)
    move.addends.push_back({sections[rank], count});
  device.backend->moveRows({&move, 1});
  return totals;
}

std::unique_ptr<CommunicatorRequest>
gatherTotals(Device &device, Buffer totals, std::span<const int64_t> sizes) {
  std::vector<int64_t> bytes;
  for (int64_t size : sizes)
    bytes.push_back(gradientBytes(device, size));
  int64_t own = bytes[static_cast<size_t>(device.rank())];
  countSentBytes(device, Phase::GradientsExchange,
                 std::vector<int64_t>(sizes.size(), own));
  return device.communicator->startAllGather(MessageKind::RowTotals,
                                             MessageMemory::Device,
                                             std::move(totals), own, bytes);
}

/// The totals of all sections as one array of f32.
Buffer readTotals(Device &device, const ReplicaUpdate &replicas,
                  CommunicatorRequest &request) {
  std::vector<const std::byte *> sections = waitForAll(request);
  Buffer totals =
      acquireSums(device, BufferKind::ReceivedGradients, replicas.numSums);
  std::vector<RowMove> moves;
  for (size_t rank = 0; rank < sections.size(); ++rank) {
    Range section = replicas.section(rank, sections.size());
    moves.push_back(
        moveOf(sections[rank], device.wireType().gradients,
               reinterpret_cast<std::byte *>(as<float>(totals) + section.begin),
               ElementType::F32, section.size()));
  }
  device.backend->moveRows(moves);
  return totals;
}

} // namespace

std::vector<SlotSums> slotSumsOf(const Partials &gradients) {
  std::vector<SlotSums> sums;
  auto *first = as<float>(gradients.rowSums);
  for (const RowSums &table : gradients.replicas.tables)
    sums.push_back({table.slot, table.rows, first + table.firstValue,
                    table.stride, first + table.firstCount});
  return sums;
}

void addUpRows(Device &device, const Routed &routed, Partials &gradients) {
  const ReplicaUpdate &replicas = gradients.replicas;
  if (replicas.tables.empty())
    return;
  PhaseTimer timer(device.figures, Phase::Update);
  gradients.rowSums =
      acquireSums(device, BufferKind::Gradients, replicas.numSums);
  device.backend->clear(gradients.rowSums.get(),
                        replicas.numSums * static_cast<int64_t>(sizeof(float)));
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  const StreamSet &local = device.layout(routed.exchange).locals[device.rank()];
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
  std::vector<int64_t> sizes = sectionSizes(device, gradients.replicas);
  std::vector<int64_t> own(sizes.size(),
                           sizes[static_cast<size_t>(device.rank())]);
  gradients.sumsRequest = startValues(device, MessageKind::RowSums,
                                      packSums(device, gradients), sizes, own);
}

void receiveRowSums(Device &device, Partials &gradients) {
  const ReplicaUpdate &replicas = gradients.replicas;
  std::vector<int64_t> sizes = sectionSizes(device, replicas);
  Buffer totals = addSections(device, *gradients.sumsRequest,
                              sizes[static_cast<size_t>(device.rank())]);
  gradients.sumsRequest = gatherTotals(device, std::move(totals), sizes);
  gradients.rowSums = readTotals(device, replicas, *gradients.sumsRequest);
}

} // namespace neuroshard::runtime
