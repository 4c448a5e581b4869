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
#include "neuroshard/Runtime/Numerics.h"

namespace neuroshard::runtime {
namespace {

using ResultView = RowsView<const float>;

class ResultWriter {
public:
  ResultWriter(Device &device, const Routed &routed, const Partials &partials,
               int64_t lookup, ElementType type, std::byte *out)
      : device(device), state(routed.lookups[static_cast<size_t>(lookup)]),
        result(device.layout(routed.exchange)
                   .results[static_cast<size_t>(lookup)]),
        pooling(device.manifest()
                    .exchanges[routed.exchange]
                    .lookups[static_cast<size_t>(lookup)]
                    .pooling),
        type(type), out(out),
        views(makeViews<const float>(
            device, routed, lookup, partials.receivedBlocks,
            partials.receivedRows, partials.relayedRows, partials.localBlock,
            partials.localRows)) {
    for (const ResultView &view : views)
      dim = std::max(dim, view.cols.end);
    segments = result.segments;
    if (result.replicated)
      segments = {{{0, dim}, {0}}};
  }

  void write() {
    if (pooling == Pooling::None)
      return writeUnpooled();
    forRowRanges(device.threads, state.resultRows, dim,
                 [&](int64_t begin, int64_t end) { writePooled(begin, end); });
  }

private:
  std::byte *outAt(int64_t row, int64_t col) const {
    return out + (row * dim + col) * elementBytes(type);
  }

  void writePooled(int64_t begin, int64_t end) const {
    std::vector<float> scratch(
        type == ElementType::F32 ? 0 : static_cast<size_t>(dim));
    for (int64_t b = begin; b < end; ++b) {
      float *row = type == ElementType::F32
                       ? reinterpret_cast<float *>(outAt(b, 0))
                       : scratch.data();
      for (const Segment &segment : segments)
        sumSegment(segment, b, row);
      if (pooling == Pooling::Mean)
        divideRow(row, dim, as<const float>(state.bagCounts)[b]);
      if (type != ElementType::F32)
        storeElements(row, dim, type, outAt(b, 0));
    }
  }

  void sumSegment(const Segment &segment, int64_t bag, float *row) const {
    int64_t size = segment.cols.size();
    float *to = row + segment.cols.begin;
    auto source = [&](int32_t part) {
      const ResultView &view = views[part];
      return view.row(bag) + (segment.cols.begin - view.cols.begin);
    };
    std::memcpy(to, source(segment.parts[0]),
                static_cast<size_t>(size) * sizeof(float));
    for (size_t i = 1; i < segment.parts.size(); ++i) {
      const float *from = source(segment.parts[i]);
      for (int64_t c = 0; c < size; ++c)
        to[c] += from[c];
    }
  }

  void writeUnpooled() const {
    for (const ResultView &view : views)
      forRowRanges(device.threads, view.numRows, view.cols.size(),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t j = begin; j < end; ++j) {
                       int64_t row = view.positions
                                         ? view.positions[j] - state.firstId
                                         : j;
                       storeElements(view.row(j), view.cols.size(), type,
                                     outAt(row, view.cols.begin));
                     }
                   });
  }

  Device &device;
  const LookupState &state;
  const ResultLayout &result;
  Pooling pooling;
  ElementType type;
  std::byte *out;
  std::vector<ResultView> views;
  std::vector<Segment> segments;
  int64_t dim = 0;
};

std::vector<MessageSection> wholeBlocks(const std::vector<Block> &blocks) {
  std::vector<MessageSection> sections;
  for (const Block &block : blocks)
    sections.push_back({0, block.size});
  return sections;
}

void receiveResults(Device &device, const Routed &routed, Partials &partials) {
  if (partials.received)
    return;
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (device.numDevices() > 1 && layout.hasRemote && !partials.request)
    fail("results of exchange ", routed.exchange,
         " are read before nsrt_results_start");
  partials.receivedBlocks = makeBatchBlocks(layout, routed);
  if (partials.request && !layout.relays.empty())
    receiveRelayedResults(device, routed, partials);
  else if (partials.request)
    partials.receivedRows = waitValues(
        device, *partials.request, wholeBlocks(partials.receivedBlocks),
        BufferKind::ReceivedResults, partials.receivedStorage);
  else // a single device, or replicated tables only, which have no blocks
    partials.receivedRows.assign(partials.receivedBlocks.size(),
                                 as<float>(partials.send));
  partials.received = true;
}

} // namespace

void startResults(Device &device, Routed &routed, Partials &partials) {
  const ExchangeLayout &layout = device.layout(routed.exchange);
  if (device.numDevices() == 1 || !layout.hasRemote)
    return;
  PhaseTimer timer(device.figures, Phase::ResultsExchange);
  if (!layout.relays.empty())
    return startRelayedResults(device, routed, partials);
  partials.request = startBlocks(
      device, Phase::ResultsExchange, BufferKind::SentResults, partials.send,
      partials.sendBlocks, makeBatchBlocks(layout, routed));
}

void writeResults(Device &device, Routed &routed, Partials &partials,
                  std::span<const ResultTarget> targets) {
  std::vector<bool> written = writeDirectly(device, routed, partials, targets);
  const ExchangeSpec &spec = device.manifest().exchanges[routed.exchange];
  for (size_t i = 0; i < targets.size(); ++i) {
    if (written[i])
      continue;
    const ResultTarget &target = targets[i];
    if (partials.deferred &&
        target.type !=
            spec.lookups[static_cast<size_t>(target.lookup)].resultType)
      finishDeferred(device); // kernels write the compiled type only
    receiveResults(device, routed, partials);
    PhaseTimer timer(device.figures, Phase::Results);
    ResultWriter(device, routed, partials, target.lookup, target.type,
                 target.out)
        .write();
  }
}

} // namespace neuroshard::runtime
