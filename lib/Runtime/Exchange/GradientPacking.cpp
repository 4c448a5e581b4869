//===- GradientPacking.cpp - Packs gradients for their owners -------------===//
//
// Writes the gradients of results into the messages to send, in the type in
// which they travel; the reverse of Results.cpp. On a single device, f32
// gradients of sums that last and are not scaled stay where they are. Gradients
// of replicated tables that all ranks gather are packed behind the ids they
// belong to; those that are added up by row are packed in f32 for that.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "GradientExchange.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "RowSumExchange.h"
#include "RowViews.h"
#include "Wire.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/IdPayload.h"

namespace neuroshard::runtime {
namespace {

AllRowBases<std::byte> basesOf(Device &device, const Routed &routed,
                               const Partials &gradients) {
  WireFormat format = device.wireType().gradients;
  auto pointersTo = [&](const std::vector<int64_t> &begins, size_t count) {
    std::vector<std::byte *> rows;
    for (size_t i = 0; i < count; ++i)
      rows.push_back(gradients.send.get() + gradientBytes(device, begins[i]));
    return rows;
  };
  AllRowBases<std::byte> bases{
      {{0, routed.batch},
       &gradients.sendBlocks,
       pointersTo(gradients.sendBegins, gradients.sendBlocks.size()),
       {},
       {},
       &gradients.localRows,
       format},
      {}};
  std::vector<ScaledColumns> columns =
      relayedColumns(device.gradientLayout(routed), device, routed, format);
  for (const RelayedPiece &piece : gradients.pieces)
    bases.pieces.push_back(
        {samplesOf(piece, device.rank()),
         nullptr,
         {},
         pointersTo(piece.relayBegins, piece.relayBegins.size()),
         columns,
         nullptr,
         format});
  return bases;
}

/// Copies the ids of some streams of the local payload.
void copyIds(Device &device, const Routed &routed, const EntrySubset &subset,
             const IdPayload &payload, std::byte *to) {
  int32_t idBytes = device.packedIdBytes(routed.exchange);
  const StreamSet &local = device.gradientLayout(routed).locals[device.rank()];
  IdPayload all(local, device.rank(), routed.batch, idBytes,
                routed.localIdsOfPeer[static_cast<size_t>(device.rank())]);
  std::vector<RowMove> moves;
  auto add = [&](int64_t source, int64_t target, int64_t bytes) {
    moves.push_back(
        copyOf(routed.localPayload.get() + source, to + target, bytes));
  };
  for (size_t i = 0; i < subset.streams.size(); ++i) {
    const StreamLayout &stream = subset.set.streams[i];
    auto from = static_cast<size_t>(subset.streams[i]);
    int64_t ids = routed.buckets[stream.bucket].numIds;
    add(all.ids(from), payload.ids(i), ids * idBytes);
    if (stream.pooled)
      add(all.lengths(from), payload.lengths(i),
          routed.batch * static_cast<int64_t>(sizeof(int32_t)));
    if (stream.weighted)
      add(all.weights(from), payload.weights(i),
          ids * static_cast<int64_t>(sizeof(float)));
  }
  device.backend->moveRows(moves);
}

/// Makes room for the gradients that all ranks gather, behind their ids.
void beginGathered(Device &device, const Routed &routed, Partials &gradients) {
  const EntrySubset &subset = gradients.replicas.gathered;
  auto rank = static_cast<size_t>(device.rank());
  IdPayload payload(subset.set, device.rank(), routed.batch,
                    device.packedIdBytes(routed.exchange),
                    subset.idsOf(routed.localIdsOfPeer[rank]));
  WireFormat format = device.wireType().gradients;
  Block block = makeOwnBlock(device, subset.set, routed, format);
  gradients.gatherMessage = device.buffers->acquire(
      BufferKind::Gradients,
      payload.bytes() + gradientBytes(device, block.size));
  placeLocalRows(block, gradients.gatherMessage.get() + payload.bytes(), format,
                 gradients.localRows, subset.entries);
  copyIds(device, routed, subset, payload, gradients.gatherMessage.get());
}

/// Makes room for the gradients that are added up by row.
void beginSummed(Device &device, const Routed &routed, Partials &gradients) {
  const EntrySubset &subset = gradients.replicas.summed;
  Block block = makeOwnBlock(device, subset.set, routed, WireFormat::F32);
  gradients.local = device.buffers->acquire(
      BufferKind::Gradients, block.size * static_cast<int64_t>(sizeof(float)));
  placeLocalRows(block, gradients.local.get(), WireFormat::F32,
                 gradients.localRows, subset.entries);
}

void beginReplicated(Device &device, const Routed &routed,
                     Partials &gradients) {
  gradients.replicas = makeReplicaUpdate(device, routed);
  gradients.localRows.resize(
      device.gradientLayout(routed).locals[device.rank()].entries.size());
  if (!gradients.replicas.gathered.entries.empty())
    beginGathered(device, routed, gradients);
  if (!gradients.replicas.summed.entries.empty())
    beginSummed(device, routed, gradients);
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
  const ExchangeLookup &spec =
      device.manifest().exchanges[routed.exchange].lookups[lookup];
  bool isMean = spec.pooling == Pooling::Mean;
  float scale = device.gradientScale * device.plan->gradientFactors[spec.table];
  for (const auto &view : makeViews(device.gradientLayout(routed), device,
                                    routed, lookup, bases)) {
    RowMove &move = moves.emplace_back();
    int64_t first = bases.samples.begin * given.stride + view.cols.begin;
    move.source = {given.first + first * elementBytes(given.type),
                   given.stride};
    move.sourceFormat = formatOf(given.type);
    move.target = {view.first, view.stride};
    move.targetFormat = view.format;
    move.rows = view.numRows;
    move.width = view.cols.size();
    move.sourcePlaces = view.places;
    move.firstPlace = state.firstId;
    move.scale = scale;
    if (isMean)
      move.divisors = as<const float>(state.bagCounts) + bases.samples.begin;
  }
}

/// Writes the gradients into messages and, of tables that are added up by row,
/// into an array of f32.
void packValues(Device &device, Routed &routed,
                std::span<const ResultGradient> given, Partials &gradients) {
  PhaseTimer timer(device.figures, Phase::Gradients);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  if (given.size() != spec.lookups.size())
    fail(spec.where, "found ", given.size(), " gradients for ",
         spec.lookups.size(), " lookups");
  const ExchangeLayout &layout = device.gradientLayout(routed);
  gradients.sendBlocks = makeBatchBlocks(device.gradientLayout(routed), device,
                                         routed, device.wireType().gradients);
  int64_t total = placeGradients(device, routed, gradients);
  gradients.inPlace.resize(given.size());
  std::vector<size_t> packed;
  for (size_t k = 0; k < given.size(); ++k) {
    const ResultLayout &result = layout.results[k];
    if (routed.lookups[k].resultRows == 0)
      continue; // the gradient may be null
    if (result.parts.empty() && !result.replicated)
      continue; // of a frozen table
    if (staysInPlace(device, spec.lookups[k], given[k]))
      gradients.inPlace[k] = {reinterpret_cast<const float *>(given[k].first),
                              given[k].stride};
    else
      packed.push_back(k);
  }
  if (!packed.empty() || device.numDevices() > 1)
    gradients.send = device.buffers->acquire(BufferKind::Gradients,
                                             gradientBytes(device, total));
  if (layout.hasReplicated)
    beginReplicated(device, routed, gradients);
  std::vector<RowMove> moves;
  AllRowBases<std::byte> all = basesOf(device, routed, gradients);
  for (size_t k : packed)
    for (const RowBases<std::byte> &bases : all.of(layout.results[k]))
      addMoves(device, routed, bases, k, given[k], moves);
  device.backend->moveRows(moves);
}

/// One update has the gradients of the same tables from all of its steps.
void requireFrozenAlike(const Device &device, const Routed &routed) {
  for (const auto &kept : device.kept.routed)
    if (hashOfFrozen(kept->frozen) != hashOfFrozen(routed.frozen))
      fail("frozen when ids were looked up: ",
           namesOf(routed.frozen, device.manifest()),
           ", but when those of kept gradients were: ",
           namesOf(kept->frozen, device.manifest()),
           "; update by the gradients that wait, or drop them, before tables "
           "are frozen or unfrozen");
}

} // namespace

void packGradients(Device &device, Routed &routed,
                   std::span<const ResultGradient> given, Partials &gradients) {
  receiveIds(device, routed);
  requireFrozenAlike(device, routed);
  packValues(device, routed, given, gradients);
  addUpRows(device, routed, gradients);
}

} // namespace neuroshard::runtime
