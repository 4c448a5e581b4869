//===- CommunicationLayers.cpp - Dense layers on blocks of rows -----------===//
///
/// \file
/// Compiled for several instruction sets, chosen when the program starts. Built
/// with -ffp-contract=off: see the header.
//===----------------------------------------------------------------------===//

#include "CommunicationLayers.h"

#include <cstring>

using namespace neuroshard;
using namespace neuroshard::dense;

namespace {

constexpr size_t kLanes = 16;
/// Rows that share a read of the weights; with 2 vectors of outputs, 8
/// accumulators.
constexpr size_t kTogether = 4;

using Floats = float __attribute__((vector_size(kLanes * sizeof(float))));

#if defined(__x86_64__)
#define NEUROSHARD_CLONES                                                      \
  __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define NEUROSHARD_CLONES
#endif
#define NEUROSHARD_INLINE __attribute__((always_inline)) inline

/// `Count` rows x `Vectors` vectors of outputs.
template <size_t Count, size_t Vectors>
NEUROSHARD_INLINE void block(const LayerView &layer, size_t out, const Rows &x,
                             size_t first, bool rectify, Rows &y) {
  Floats sum[Count][Vectors];
  const float *inputs[Count];
  for (size_t r = 0; r < Count; ++r) {
    inputs[r] = x.row(first + r);
    std::memcpy(&sum[r], layer.bias + out, sizeof sum[r]);
  }
  const float *weight = layer.weight + out;
  for (size_t i = 0; i < layer.in; ++i, weight += layer.out) {
    Floats w[Vectors];
    std::memcpy(&w, weight, sizeof w);
    for (size_t r = 0; r < Count; ++r)
      for (size_t v = 0; v < Vectors; ++v)
        sum[r][v] += w[v] * inputs[r][i];
  }
  for (size_t r = 0; r < Count; ++r) {
    for (size_t v = 0; v < Vectors && rectify; ++v)
      sum[r][v] = sum[r][v] > 0.0f ? sum[r][v] : Floats{};
    std::memcpy(y.row(first + r) + out, &sum[r], sizeof sum[r]);
  }
}

template <size_t Count>
NEUROSHARD_INLINE void blockOfRows(const LayerView &layer, const Rows &x,
                                   size_t first, bool rectify, Rows &y) {
  size_t out = 0;
  for (; out + 2 * kLanes <= layer.out; out += 2 * kLanes)
    block<Count, 2>(layer, out, x, first, rectify, y);
  if (out < layer.out)
    block<Count, 1>(layer, out, x, first, rectify, y);
}

} // namespace

NEUROSHARD_CLONES
static void applyRows(const LayerView &layer, const Rows &x, size_t rows,
                      bool rectify, Rows &y) {
  size_t row = 0;
  for (; row + kTogether <= rows; row += kTogether)
    blockOfRows<kTogether>(layer, x, row, rectify, y);
  for (; row + 2 <= rows; row += 2)
    blockOfRows<2>(layer, x, row, rectify, y);
  for (; row < rows; ++row)
    blockOfRows<1>(layer, x, row, rectify, y);
}

void dense::applyLayer(const LayerView &layer, const Rows &x, size_t rows,
                       bool rectify, Rows &y) {
  applyRows(layer, x, rows, rectify, y);
}
