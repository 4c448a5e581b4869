//===- GradientPacking.cpp - Packs gradients for their owners -------------===//
//
// Writes the gradients of results into the messages to send, in the type in
// which they travel; the reverse of Results.cpp. On a single device, f32
// gradients of sums that last and are not scaled stay where they are. Gradients
// of replicated tables are packed behind the ids they belong to, since every
// device gathers both.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "GradientExchange.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "RowViews.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::runtime {
namespace {

RowBases<std::byte> basesOf(Device &device, const Routed &routed,
                            const Partials &gradients) {
  RowBases<std::byte> bases;
  bases.format = bases.localFormat = device.wireType().gradients;
  bases.blocks = &gradients.sendBlocks;
  for (size_t peer = 0; peer < gradients.sendBlocks.size(); ++peer)
    bases.rows.push_back(gradients.send.get() +
                         gradientBytes(device, gradients.sendBegins[peer]));
  for (int64_t begin : gradients.relayBegins)
    bases.relayedRows.push_back(gradients.send.get() +
                                gradientBytes(device, begin));
  bases.relayedColumns = relayedColumns(device, routed, bases.format);
  bases.localBlock = &gradients.localBlock;
  bases.localRows = gradients.localRows;
  return bases;
}

void beginReplicated(Device &device, const Routed &routed,
                     Partials &gradients) {
  gradients.localBlock =
      makeLocalBlock(device, routed, device.wireType().gradients);
  gradients.local = device.buffers->acquire(
      BufferKind::Gradients,
      routed.localPayloadBytes +
          gradientBytes(device, gradients.localBlock.size));
  gradients.localRows = gradients.local.get() + routed.localPayloadBytes;
  RowMove ids = copyOf(routed.localPayload.get(), gradients.local.get(),
                       routed.localPayloadBytes);
  device.backend->moveRows({&ids, 1});
}

/// A single device's kernels read f32 as it is given, unless it is divided or
/// scaled first.
bool staysInPlace(const Device &device, const ExchangeLookup &lookup,
                  const ResultGradient &given) {
  return device.numDevices() == 1 && given.lasts &&
         given.type == ElementType::F32 && lookup.pooling == Pooling::Sum &&
         device.gradientScale == 1;
}

void addMoves(const Device &device, const Routed &routed,
              const RowBases<std::byte> &bases, size_t lookup,
              const ResultGradient &given, std::vector<RowMove> &moves) {
  const LookupState &state = routed.lookups[lookup];
  bool isMean =
      device.manifest().exchanges[routed.exchange].lookups[lookup].pooling ==
      Pooling::Mean;
  for (const auto &view : makeViews(device, routed, lookup, bases)) {
    RowMove &move = moves.emplace_back();
    move.source = {given.first + view.cols.begin * elementBytes(given.type),
                   given.stride};
    move.sourceFormat = formatOf(given.type);
    move.target = {view.first, view.stride};
    move.targetFormat = view.format;
    move.rows = view.numRows;
    move.width = view.cols.size();
    move.sourcePlaces = view.places;
    move.firstPlace = state.firstId;
    move.scale = device.gradientScale;
    if (isMean)
      move.divisors = as<const float>(state.bagCounts);
  }
}

} // namespace

void packGradients(Device &device, Routed &routed,
                   std::span<const ResultGradient> given, Partials &gradients) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Gradients);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  if (given.size() != spec.lookups.size())
    fail(spec.where, "found ", given.size(), " gradients for ",
         spec.lookups.size(), " lookups");
  gradients.sendBlocks =
      makeBatchBlocks(device, routed, device.wireType().gradients);
  int64_t total = placeGradients(device, routed, gradients);
  gradients.inPlace.resize(given.size());
  std::vector<size_t> packed;
  for (size_t k = 0; k < given.size(); ++k) {
    if (routed.lookups[k].resultRows == 0)
      continue; // the gradient may be null
    if (staysInPlace(device, spec.lookups[k], given[k]))
      gradients.inPlace[k] = {reinterpret_cast<const float *>(given[k].first),
                              given[k].stride};
    else
      packed.push_back(k);
  }
  if (!packed.empty() || device.numDevices() > 1)
    gradients.send = device.buffers->acquire(BufferKind::Gradients,
                                             gradientBytes(device, total));
  if (device.layout(routed.exchange).hasReplicated)
    beginReplicated(device, routed, gradients);
  std::vector<RowMove> moves;
  RowBases<std::byte> bases = basesOf(device, routed, gradients);
  for (size_t k : packed)
    addMoves(device, routed, bases, k, given[k], moves);
  device.backend->moveRows(moves);
}

} // namespace neuroshard::runtime
