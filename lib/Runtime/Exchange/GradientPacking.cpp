//===- GradientPacking.cpp - Packs gradients for their owners -------------===//
//
// Writes the gradients of results into the blocks to send, the reverse of
// Results.cpp. Gradients of replicated tables are packed behind the ids they
// belong to, since every device gathers both.
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"
#include "GradientExchange.h"
#include "HierarchicalAllToAll.h"
#include "IdExchange.h"
#include "RowViews.h"
#include "neuroshard/Runtime/Numerics.h"

#include <cstring>

namespace neuroshard::runtime {
namespace {

using GradientView = RowsView<float>;

class GradientWriter {
public:
  GradientWriter(Device &device, const Routed &routed, Partials &gradients,
                 int64_t lookup, ElementType type, const std::byte *in)
      : device(device), state(routed.lookups[static_cast<size_t>(lookup)]),
        spec(device.manifest()
                 .exchanges[routed.exchange]
                 .lookups[static_cast<size_t>(lookup)]),
        type(type), in(in), dim(device.manifest().tables[spec.table].dim) {
    std::vector<float *> rows;
    float *next = as<float>(gradients.send);
    for (const Block &block : gradients.sendBlocks) {
      rows.push_back(next);
      next += block.size;
    }
    std::vector<float *> relayedRows;
    for (const RelayLayout &relay : device.layout(routed.exchange).relays) {
      relayedRows.push_back(next);
      next += routed.batch * relay.width;
    }
    views = makeViews<float>(device, routed, lookup, gradients.sendBlocks, rows,
                             relayedRows, gradients.localBlock,
                             gradients.localRows);
  }

  void write() {
    if (spec.pooled())
      forRowRanges(
          device.threads, state.resultRows, dim,
          [&](int64_t begin, int64_t end) { writePooled(begin, end); });
    else
      writeUnpooled();
  }

private:
  const std::byte *inAt(int64_t row, int64_t col) const {
    return in + (row * dim + col) * elementBytes(type);
  }

  void scale(float *row, int64_t count) const {
    if (device.gradientScale == 1)
      return;
    for (int64_t i = 0; i < count; ++i)
      row[i] *= device.gradientScale;
  }

  void writePooled(int64_t begin, int64_t end) const {
    bool direct = type == ElementType::F32 && spec.pooling == Pooling::Sum &&
                  device.gradientScale == 1;
    std::vector<float> scratch(direct ? 0 : static_cast<size_t>(dim));
    for (int64_t b = begin; b < end; ++b) {
      const float *row = reinterpret_cast<const float *>(inAt(b, 0));
      if (!direct) {
        loadElements(inAt(b, 0), dim, type, scratch.data());
        if (spec.pooling == Pooling::Mean)
          divideRow(scratch.data(), dim, as<const float>(state.bagCounts)[b]);
        scale(scratch.data(), dim);
        row = scratch.data();
      }
      for (const GradientView &view : views)
        std::memcpy(view.row(b), row + view.cols.begin,
                    static_cast<size_t>(view.cols.size()) * sizeof(float));
    }
  }

  void writeUnpooled() const {
    for (const GradientView &view : views)
      forRowRanges(device.threads, view.numRows, view.cols.size(),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t j = begin; j < end; ++j) {
                       int64_t row = view.positions
                                         ? view.positions[j] - state.firstId
                                         : j;
                       loadElements(inAt(row, view.cols.begin),
                                    view.cols.size(), type, view.row(j));
                       scale(view.row(j), view.cols.size());
                     }
                   });
  }

  Device &device;
  const LookupState &state;
  const ExchangeLookup &spec;
  ElementType type;
  const std::byte *in;
  int64_t dim;
  std::vector<GradientView> views;
};

} // namespace

void beginGradients(Device &device, Routed &routed, Partials &gradients) {
  receiveIds(device, routed);
  PhaseTimer timer(device.figures, Phase::Gradients);
  const ExchangeLayout &layout = device.layout(routed.exchange);
  gradients.sendBlocks = makeBatchBlocks(layout, routed);
  gradients.send = device.buffers->acquireArray<float>(
      BufferKind::Gradients, totalFloats(gradients.sendBlocks) +
                                 relayedGradientValues(layout, routed));
  if (!layout.hasReplicated)
    return;
  gradients.localBlock = makeLocalBlock(device, routed);
  int64_t rowBytes =
      gradients.localBlock.size * static_cast<int64_t>(sizeof(float));
  gradients.local = device.buffers->acquire(
      BufferKind::Gradients, routed.localPayloadBytes + rowBytes);
  std::memcpy(gradients.local.get(), routed.localPayload.get(),
              static_cast<size_t>(routed.localPayloadBytes));
  gradients.localRows = reinterpret_cast<float *>(gradients.local.get() +
                                                  routed.localPayloadBytes);
}

void setGradient(Device &device, Routed &routed, Partials &gradients,
                 int64_t lookup, ElementType type, const std::byte *gradient) {
  PhaseTimer timer(device.figures, Phase::Gradients);
  GradientWriter(device, routed, gradients, lookup, type, gradient).write();
}

} // namespace neuroshard::runtime
