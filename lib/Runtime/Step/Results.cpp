//===- Results.cpp - From partial results to results ----------------------===//
//
// Puts columns side by side, adds the partial sums of row shards in rank order,
// divides means by the bag's full count, and rounds once.
//
//===----------------------------------------------------------------------===//

#include "EntryLookups.h"
#include "Exchange/Blocks.h"
#include "Exchange/HierarchicalAllToAll.h"
#include "Exchange/RelayDuties.h"
#include "Exchange/RowViews.h"
#include "Steps.h"
#include "neuroshard/Artifact/Error.h"

#include <optional>

namespace neuroshard::runtime {
namespace {

using ResultView = RowsView<const std::byte>;

AllRowBases<const std::byte> basesOf(Device &device, const Routed &routed,
                                     const Partials &partials) {
  WireFormat format = device.wireType().results;
  AllRowBases<const std::byte> bases{{{0, routed.batch},
                                      &partials.receivedBlocks,
                                      partials.receivedRows,
                                      {},
                                      {},
                                      &partials.localRows,
                                      format},
                                     {}};
  std::vector<ScaledColumns> columns =
      relayedColumns(device.layout(routed.exchange), device, routed, format);
  for (const RelayedPiece &piece : partials.pieces)
    bases.pieces.push_back({samplesOf(piece, device.rank()),
                            nullptr,
                            {},
                            piece.rows,
                            columns,
                            nullptr,
                            format});
  return bases;
}

/// Adds what writes some rows of one result.
class ResultMoves {
public:
  ResultMoves(const Device &device, const Routed &routed,
              const RowBases<const std::byte> &bases,
              const ResultTarget &target, std::vector<RowMove> &moves)
      : samples(bases.samples),
        state(routed.lookups[static_cast<size_t>(target.lookup)]),
        result(device.layout(routed.exchange)
                   .results[static_cast<size_t>(target.lookup)]),
        spec(device.manifest()
                 .exchanges[routed.exchange]
                 .lookups[static_cast<size_t>(target.lookup)]),
        dim(device.manifest().tables[spec.table].dim), target(target),
        views(makeViews(device.layout(routed.exchange), device, routed,
                        static_cast<size_t>(target.lookup), bases)),
        moves(moves) {}

  void add() {
    if (state.resultRows == 0)
      return; // the result may be null
    if (!spec.pooled())
      return addUnpooled();
    if (result.replicated)
      return addSegment({{0, dim}, {0}});
    for (const Segment &segment : result.segments)
      addSegment(segment);
  }

private:
  RowMove &addMove(const ResultView &view, Range cols) {
    RowMove &move = moves.emplace_back();
    move.source = sourceOf(view, cols);
    move.sourceFormat = view.format;
    move.target = {target.out + cols.begin * elementBytes(target.type),
                   target.stride};
    move.targetFormat = formatOf(target.type);
    move.rows = view.numRows;
    move.width = cols.size();
    return move;
  }

  static SourceRows sourceOf(const ResultView &view, Range cols) {
    return {view.first, view.stride, cols.begin - view.cols.begin};
  }

  void addSegment(const Segment &segment) {
    RowMove &move = addMove(views[segment.parts[0]], segment.cols);
    move.rows = samples.size();
    move.target.first +=
        samples.begin * target.stride * elementBytes(target.type);
    for (size_t i = 1; i < segment.parts.size(); ++i)
      move.addends.push_back(sourceOf(views[segment.parts[i]], segment.cols));
    if (spec.pooling == Pooling::Mean)
      move.divisors = as<const float>(state.bagCounts) + samples.begin;
  }

  void addUnpooled() {
    for (const ResultView &view : views) {
      RowMove &move = addMove(view, view.cols);
      move.targetPlaces = view.places;
      move.firstPlace = state.firstId;
    }
  }

  Range samples;
  const LookupState &state;
  const ResultLayout &result;
  const ExchangeLookup &spec;
  int64_t dim;
  const ResultTarget &target;
  std::vector<ResultView> views;
  std::vector<RowMove> &moves;
};

void receiveResults(Device &device, const Routed &routed, Partials &partials) {
  if (partials.received)
    return;
  const ExchangeLayout &layout = device.layout(routed.exchange);
  bool isRelayed = !partials.pieces.empty();
  if (device.numDevices() > 1 && layout.hasRemote && !partials.request &&
      !isRelayed)
    fail("results of exchange ", routed.exchange,
         " are read before nsrt_results_start");
  if (isRelayed) // in the order of all ranks
    relayResults(device, &partials);
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  if (!isRelayed)
    partials.receivedBlocks =
        makeBatchBlocks(device.layout(routed.exchange), device, routed,
                        device.wireType().results);
  if (isRelayed)
    receiveRelayedResults(device, routed, partials);
  else if (partials.request)
    partials.receivedRows = waitForAll(*partials.request);
  else // a single device, or replicated tables only, which have no blocks
    partials.receivedRows.assign(partials.receivedBlocks.size(),
                                 partials.send.get());
  partials.received = true;
}

/// The results as they are sent: to each rank so many values.
Buffer packResults(Device &device, const Routed &routed,
                   const Partials &partials,
                   const std::vector<int64_t> &counts) {
  WireFormat format = device.wireType().results;
  if (format == WireFormat::F32)
    return partials.send;
  const StreamSet &set = device.layout(routed.exchange).owners[device.rank()];
  std::vector<int64_t> begins = beginsOf(counts);
  Buffer message = device.buffers->acquire(BufferKind::SentResults,
                                           resultBytes(device, begins.back()));
  std::vector<RowMove> moves;
  for (size_t peer = 0; peer < counts.size(); ++peer)
    for (const RowsOfMessage &rows :
         directRows(set, static_cast<int64_t>(peer), routed.batchOfPeer[peer],
                    routed.ownedIdsOfPeer[peer], format))
      rows.addPacking(
          as<const float>(partials.send) + partials.sendBegins[peer],
          message.get() + resultBytes(device, begins[peer]), format, moves);
  device.backend->moveRows(moves);
  return message;
}

} // namespace

void startResults(Device &device, Routed &routed, Partials &partials) {
  device.order.add(Exchanged::Results, routed.input);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (device.numDevices() == 1 || !layout.hasRemote)
    return;
  if (!layout.relays.empty())
    return startRelayedResults(device, routed, partials,
                               [&](const RelayedPiece &piece) {
                                 lookUpRelayed(device, routed, partials, piece);
                               });
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  WireFormat format = device.wireType().results;
  std::vector<int64_t> counts = sizesOf(makeDirectOwnerBlocks(
      device.layout(routed.exchange), device, routed, format));
  partials.request =
      startValues(device, MessageKind::Results,
                  packResults(device, routed, partials, counts), counts,
                  sizesOf(makeBatchBlocks(device.layout(routed.exchange),
                                          device, routed, format)));
}

void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets) {
  std::vector<bool> written = writeDirectly(device, routed, partials, targets);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  std::vector<RowMove> moves;
  std::optional<AllRowBases<const std::byte>> all;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (written[i])
      continue;
    const ResultTarget &target = targets[i];
    if (partials.deferred &&
        target.type !=
            spec.lookups[static_cast<size_t>(target.lookup)].resultType)
      finishDeferred(device); // kernels write the compiled type only
    receiveResults(device, routed, partials);
    if (!all)
      all = basesOf(device, routed, partials);
    const ResultLayout &result =
        device.layout(routed.exchange)
            .results[static_cast<size_t>(target.lookup)];
    for (const RowBases<const std::byte> &bases : all->of(result))
      ResultMoves(device, routed, bases, target, moves).add();
  }
  PhaseTimer timer(device.figures, Phase::Results);
  device.backend->moveRows(moves);
}

} // namespace neuroshard::runtime
