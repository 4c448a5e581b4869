//===- Results.cpp - From partial results to results ----------------------===//
//
// Puts columns side by side, adds the partial sums of row shards in rank order,
// divides means by the bag's full count, and rounds once.
//
//===----------------------------------------------------------------------===//

#include "Exchange/Blocks.h"
#include "Exchange/HierarchicalAllToAll.h"
#include "Exchange/RowViews.h"
#include "Steps.h"
#include "neuroshard/Artifact/Error.h"

namespace neuroshard::runtime {
namespace {

using ResultView = RowsView<const std::byte>;

RowBases<const std::byte> basesOf(const Device &device,
                                  const Partials &partials) {
  return {&partials.receivedBlocks, partials.receivedRows, partials.relayedRows,
          &partials.localRows, device.wireType().results};
}

/// Adds what writes one result.
class ResultMoves {
public:
  ResultMoves(const Device &device, const Routed &routed,
              const Partials &partials, const ResultTarget &target,
              std::vector<RowMove> &moves)
      : state(routed.lookups[static_cast<size_t>(target.lookup)]),
        result(device.layout(routed.exchange)
                   .results[static_cast<size_t>(target.lookup)]),
        spec(device.manifest()
                 .exchanges[routed.exchange]
                 .lookups[static_cast<size_t>(target.lookup)]),
        dim(device.manifest().tables[spec.table].dim), target(target),
        views(makeViews(device, routed, static_cast<size_t>(target.lookup),
                        basesOf(device, partials))),
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
    move.sourceType = view.type;
    move.target = {target.out + cols.begin * elementBytes(target.type),
                   target.stride};
    move.targetType = target.type;
    move.rows = view.numRows;
    move.width = cols.size();
    return move;
  }

  static SourceRows sourceOf(const ResultView &view, Range cols) {
    return {view.first +
                (cols.begin - view.cols.begin) * elementBytes(view.type),
            view.stride};
  }

  void addSegment(const Segment &segment) {
    RowMove &move = addMove(views[segment.parts[0]], segment.cols);
    for (size_t i = 1; i < segment.parts.size(); ++i)
      move.addends.push_back(sourceOf(views[segment.parts[i]], segment.cols));
    if (spec.pooling == Pooling::Mean)
      move.divisors = as<const float>(state.bagCounts);
  }

  void addUnpooled() {
    for (const ResultView &view : views) {
      RowMove &move = addMove(view, view.cols);
      move.targetPlaces = view.places;
      move.firstPlace = state.firstId;
    }
  }

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
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (device.numDevices() > 1 && layout.hasRemote && !partials.request)
    fail("results of exchange ", routed.exchange,
         " are read before nsrt_results_start");
  partials.receivedBlocks = makeBatchBlocks(device, routed);
  if (partials.request && !layout.relays.empty())
    receiveRelayedResults(device, routed, partials);
  else if (partials.request)
    partials.receivedRows = waitForAll(*partials.request);
  else // a single device, or replicated tables only, which have no blocks
    partials.receivedRows.assign(partials.receivedBlocks.size(),
                                 partials.send.get());
  partials.received = true;
}

/// The results as they are sent.
Buffer packResults(Device &device, const Partials &partials) {
  ElementType type = device.wireType().results;
  if (type == ElementType::F32)
    return partials.send;
  int64_t count = partials.sendBegins.back();
  Buffer message = device.buffers->acquire(BufferKind::SentResults,
                                           resultBytes(device, count));
  RowMove move =
      moveOf(partials.send.get(), ElementType::F32, message.get(), type, count);
  device.backend->moveRows({&move, 1});
  return message;
}

} // namespace

void startResults(Device &device, Routed &routed, Partials &partials) {
  device.order.add(Exchanged::Results, routed.input);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (device.numDevices() == 1 || !layout.hasRemote)
    return;
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  if (!layout.relays.empty())
    return startRelayedResults(device, routed, partials);
  partials.request = startValues(
      device, MessageKind::Results, packResults(device, partials),
      sizesOf(partials.sendBlocks), sizesOf(makeBatchBlocks(device, routed)));
}

void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets) {
  std::vector<bool> written = writeDirectly(device, routed, partials, targets);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  std::vector<RowMove> moves;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (written[i])
      continue;
    const ResultTarget &target = targets[i];
    if (partials.deferred &&
        target.type !=
            spec.lookups[static_cast<size_t>(target.lookup)].resultType)
      finishDeferred(device); // kernels write the compiled type only
    receiveResults(device, routed, partials);
    ResultMoves(device, routed, partials, target, moves).add();
  }
  PhaseTimer timer(device.figures, Phase::Results);
  device.backend->moveRows(moves);
}

} // namespace neuroshard::runtime
