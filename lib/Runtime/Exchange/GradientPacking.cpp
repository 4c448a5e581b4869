//===- GradientPacking.cpp - Packs gradients for their owners -------------===//
//
// Writes the gradients of results into the messages to send, in the type in
// which they travel; the reverse of Results.cpp. Gradients of replicated tables
// are packed behind the ids they belong to, since every device gathers both.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "GradientExchange.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "RowViews.h"
#include "Wire.h"

namespace neuroshard::runtime {
namespace {

RowBases<std::byte> basesOf(const Device &device, const Partials &gradients) {
  RowBases<std::byte> bases;
  ElementType type = device.travelType();
  bases.blocks = &gradients.sendBlocks;
  for (size_t peer = 0; peer < gradients.sendBlocks.size(); ++peer)
    bases.rows.push_back(gradients.send.get() +
                         gradients.sendBegins[peer] * elementBytes(type));
  for (int64_t begin : gradients.relayBegins)
    bases.relayedRows.push_back(gradients.send.get() +
                                begin * elementBytes(type));
  bases.localBlock = &gradients.localBlock;
  bases.localRows = gradients.localRows;
  bases.type = bases.localType = type;
  return bases;
}

void beginReplicated(Device &device, const Routed &routed,
                     Partials &gradients) {
  gradients.localBlock = makeLocalBlock(device, routed);
  gradients.local = device.buffers->acquire(
      BufferKind::Gradients,
      routed.localPayloadBytes + wireBytes(device, gradients.localBlock.size));
  gradients.localRows = gradients.local.get() + routed.localPayloadBytes;
  RowMove ids = copyOf(routed.localPayload.get(), gradients.local.get(),
                       routed.localPayloadBytes);
  device.backend->moveRows({&ids, 1});
}

} // namespace

void beginGradients(Device &device, Routed &routed, Partials &gradients) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Gradients);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  gradients.sendBlocks = makeBatchBlocks(device, routed);
  int64_t total = placeGradients(device, routed, gradients);
  gradients.send =
      device.buffers->acquire(BufferKind::Gradients, wireBytes(device, total));
  if (layout.hasReplicated)
    beginReplicated(device, routed, gradients);
}

void setGradient(Device &device, Routed &routed, Partials &gradients,
                 int64_t lookup, ElementType type, const std::byte *gradient) {
  PhaseTimer timer(device.figures, Phase::Gradients);
  auto index = static_cast<size_t>(lookup);
  const LookupState &state = routed.lookups[index];
  if (state.resultRows == 0)
    return; // the gradient may be null
  const ExchangeLookup &spec =
      device.manifest().exchanges[routed.exchange].lookups[index];
  int64_t dim = device.manifest().tables[spec.table].dim;
  std::vector<RowMove> moves;
  for (const auto &view :
       makeViews(device, routed, index, basesOf(device, gradients))) {
    RowMove &move = moves.emplace_back();
    move.source = {gradient + view.cols.begin * elementBytes(type), dim};
    move.sourceType = type;
    move.target = {view.first, view.stride};
    move.targetType = view.type;
    move.rows = view.numRows;
    move.width = view.cols.size();
    move.sourcePlaces = view.places;
    move.firstPlace = state.firstId;
    move.scale = device.gradientScale;
    if (spec.pooling == Pooling::Mean)
      move.divisors = as<const float>(state.bagCounts);
  }
  device.backend->moveRows(moves);
}

} // namespace neuroshard::runtime
