//===- CommunicationLayers.cpp - Dense layers on blocks of rows -----------===//
///
/// \file
/// Built with -ffp-contract=off: see the header.
//===----------------------------------------------------------------------===//

#include "CommunicationLayers.h"

#include "Layers/Vectors.h"
#include "neuroshard/Support/InstructionSets.h"

#include <cstring>

using namespace neuroshard;
using namespace neuroshard::dense;

namespace {

/// Rows that share a read of the weights.
constexpr size_t kTogether = 4;

template <size_t Lanes> struct Kernels {
  using Floats = typename Vectors<Lanes>::Floats;

  /// `Count` rows x `Width` vectors of outputs, all in registers.
  template <size_t Count, size_t Width>
  NEUROSHARD_INLINE static void block(const LayerView &layer, size_t out,
                                      const Rows &x, size_t first, bool rectify,
                                      Rows &y) {
    Floats sum[Count][Width];
    const float *inputs[Count];
    for (size_t r = 0; r < Count; ++r) {
      inputs[r] = x.row(first + r);
      std::memcpy(&sum[r], layer.bias + out, sizeof sum[r]);
    }
    const float *weight = layer.weight + out;
    for (size_t i = 0; i < layer.in; ++i, weight += layer.out) {
      Floats w[Width];
      std::memcpy(&w, weight, sizeof w);
      for (size_t r = 0; r < Count; ++r)
        for (size_t v = 0; v < Width; ++v)
          sum[r][v] += w[v] * inputs[r][i];
    }
    for (size_t r = 0; r < Count; ++r) {
      for (size_t v = 0; v < Width && rectify; ++v)
        sum[r][v] = sum[r][v] > 0.0f ? sum[r][v] : Floats{};
      std::memcpy(y.row(first + r) + out, &sum[r], sizeof sum[r]);
    }
  }

  template <size_t Count>
  NEUROSHARD_INLINE static void rows(const LayerView &layer, const Rows &x,
                                     size_t first, bool rectify, Rows &y) {
    size_t out = 0;
    for (; out + 2 * Lanes <= layer.out; out += 2 * Lanes)
      block<Count, 2>(layer, out, x, first, rectify, y);
    if (out < layer.out)
      block<Count, 1>(layer, out, x, first, rectify, y);
  }

  NEUROSHARD_INLINE static void allRows(const LayerView &layer, const Rows &x,
                                        size_t count, bool rectify, Rows &y) {
    size_t row = 0;
    for (; row + kTogether <= count; row += kTogether)
      rows<kTogether>(layer, x, row, rectify, y);
    for (; row < count; ++row)
      rows<1>(layer, x, row, rectify, y);
  }
};

} // namespace

void dense::applyLayer(const LayerView &layer, const Rows &x, size_t rows,
                       bool rectify, Rows &y) {
  runFor(widestInstructionSet(), [&](auto lanes) NEUROSHARD_INLINE {
    Kernels<lanes>::allRows(layer, x, rows, rectify, y);
  });
}
