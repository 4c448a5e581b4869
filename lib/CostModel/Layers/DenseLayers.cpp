//===- DenseLayers.cpp - Inference of dense layers, vectorised ------------===//
///
/// \file
/// No result depends on the width of the vectors. Built with -ffp-contract=off:
/// see the header.
//===----------------------------------------------------------------------===//

#include "DenseLayers.h"

#include "Vectors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

using namespace neuroshard;
using namespace neuroshard::dense;

namespace {

/// Vectors of outputs that are accumulated in registers at once.
constexpr size_t kRegisterVectors = 4;
/// Fewer rows than this are cheaper one by one than as a block.
constexpr size_t kFewestBlockRows = 8;

/// Vectors of `Lanes` floats; RowVectors of them hold the rows that are worked
/// on at once without running out of registers.
template <size_t Lanes, size_t RowVectors> struct Kernels {
  using Floats = typename Vectors<Lanes>::Floats;
  using Ints = typename Vectors<Lanes>::Ints;

  NEUROSHARD_INLINE static void load(const float *from, Floats &to) {
    std::memcpy(&to, from, sizeof to);
  }
  NEUROSHARD_INLINE static void store(const Floats &from, float *to) {
    std::memcpy(to, &from, sizeof from);
  }

  /// x = log(x) for positive, normal x. With x = 2^e m, m in [sqrt(1/2), sqrt
  /// 2) and t = (m - 1) / (m + 1): e log 2 + 2 (t + t^3/3 + ... + t^9/9), where
  /// the terms left out are below 1e-9.
  NEUROSHARD_INLINE static void logarithm(Floats &x) {
    constexpr int32_t kSqrtHalfBits = 0x3f3504f3;
    Ints bits = (Ints)x;
    Ints exponent = (bits - kSqrtHalfBits) >> 23;
    Ints mantissaBits = bits - (exponent << 23);
    Floats mantissa = (Floats)mantissaBits;
    Floats e = __builtin_convertvector(exponent, Floats);
    Floats t = (mantissa - 1.0f) / (mantissa + 1.0f);
    Floats square = t * t;
    Floats series = square * (2.0f / 9) + 2.0f / 7;
    series = series * square + 2.0f / 5;
    series = series * square + 2.0f / 3;
    // log 2 in two parts: the first is exact in a product with an exponent.
    constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
    x = e * kLog2High + (t * 2.0f + (series * square * t + e * kLog2Low));
  }

  /// x = exp(x), x kept within +-60 (NaN becomes 60). With n = round(x / log 2)
  /// and r = x - n log 2: 2^n times the series of exp to r^7.
  NEUROSHARD_INLINE static void exponential(Floats &x) {
    constexpr float kLimit = 60;
    x = x < kLimit ? x : Floats{} + kLimit;
    x = x > -kLimit ? x : Floats{} - kLimit;
    constexpr float kRound = 12582912.0f; // 1.5 * 2^23: no fraction is left.
    constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
    Floats shifted = x * 1.44269504f + kRound;
    Floats n = shifted - kRound;
    Floats r = (x - n * kLog2High) - n * kLog2Low;
    Floats series = r * (1.0f / 5040) + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = (series * r * r + r) + 1.0f;
    Ints power = (__builtin_convertvector(n, Ints) + 127) << 23;
    x = series * (Floats)power;
  }

  NEUROSHARD_INLINE static void rectify(Floats &x) {
    x = x > 0.0f ? x : Floats{};
  }

  NEUROSHARD_INLINE static void affineBody(const PackedLayer &layer,
                                           const float *x, float *y) {
    size_t out = 0;
    for (; out < layer.paddedOut; out += Lanes * kRegisterVectors) {
      size_t vectors =
          std::min(kRegisterVectors, (layer.paddedOut - out) / Lanes);
      Floats sum[kRegisterVectors] = {};
      for (size_t v = 0; v < vectors; ++v)
        load(&layer.bias[out + v * Lanes], sum[v]);
      const float *weight = &layer.weight[out];
      if (vectors == kRegisterVectors) {
        for (size_t i = 0; i < layer.in; ++i, weight += layer.paddedOut)
          for (size_t v = 0; v < kRegisterVectors; ++v) {
            Floats w;
            load(weight + v * Lanes, w);
            sum[v] += w * x[i];
          }
      } else {
        for (size_t i = 0; i < layer.in; ++i, weight += layer.paddedOut)
          for (size_t v = 0; v < vectors; ++v) {
            Floats w;
            load(weight + v * Lanes, w);
            sum[v] += w * x[i];
          }
      }
      for (size_t v = 0; v < vectors; ++v)
        store(sum[v], y + out + v * Lanes);
    }
  }

  /// logs = log(sums + kLogFloor), sums by row to logs by sum.
  NEUROSHARD_INLINE static void blockLogs(const double *sums, size_t stride,
                                          size_t rows, size_t count,
                                          float *logs) {
    for (size_t r = 0; r < rows; ++r)
      for (size_t k = 0; k < count; ++k)
        logs[k * kBlockRows + r] =
            static_cast<float>(sums[r * stride + k] + kLogFloor);
    for (size_t r = rows; r < kBlockRows; ++r)
      for (size_t k = 0; k < count; ++k)
        logs[k * kBlockRows + r] = 1;
    for (size_t i = 0; i < count * kBlockRows; i += Lanes) {
      Floats value;
      load(logs + i, value);
      logarithm(value);
      store(value, logs + i);
    }
  }

  /// A block of rows: vectors run over the rows.
  NEUROSHARD_INLINE static void headBlock(const PackedHead &head,
                                          const double *sums, size_t stride,
                                          size_t rows, float *out) {
    alignas(64) float logs[kMaxSumWidth * kBlockRows];
    blockLogs(sums, stride, rows, head.sums, logs);
    for (size_t first = 0; first < kBlockRows; first += Lanes * RowVectors)
      headRowGroup(head, logs + first, out + first);
  }

  /// Lanes x RowVectors rows of a block. Two hidden outputs at a time share the
  /// loads of the logarithms; an odd one is followed by a padding output of
  /// zero weights.
  NEUROSHARD_INLINE static void headRowGroup(const PackedHead &head,
                                             const float *logs, float *out) {
    Floats result[2][RowVectors];
    for (size_t o = 0; o < 2; ++o)
      for (size_t v = 0; v < RowVectors; ++v)
        result[o][v] = Floats{} + head.outputBias[o];
    for (size_t j = 0; j < head.hidden.out; j += 2) {
      Floats unit[2][RowVectors];
      const float *weight[2] = {&head.hiddenByOutput[j * head.sums],
                                &head.hiddenByOutput[(j + 1) * head.sums]};
      for (size_t u = 0; u < 2; ++u)
        for (size_t v = 0; v < RowVectors; ++v)
          unit[u][v] = Floats{} + head.hidden.bias[j + u];
      for (size_t k = 0; k < head.sums; ++k)
        for (size_t v = 0; v < RowVectors; ++v) {
          Floats z;
          load(logs + k * kBlockRows + v * Lanes, z);
          unit[0][v] += z * weight[0][k];
          unit[1][v] += z * weight[1][k];
        }
      for (size_t u = 0; u < 2; ++u)
        for (size_t v = 0; v < RowVectors; ++v) {
          rectify(unit[u][v]);
          for (size_t o = 0; o < 2; ++o)
            result[o][v] += unit[u][v] * head.outputWeight[(j + u) * 2 + o];
        }
    }
    for (size_t o = 0; o < 2; ++o)
      for (size_t v = 0; v < RowVectors; ++v) {
        Floats base;
        load(logs + o * kBlockRows + v * Lanes, base);
        store(base + result[o][v], out + o * kBlockRows + v * Lanes);
      }
  }

  /// One row: vectors run over the hidden outputs, with the same operations in
  /// the same order as in headBlock().
  NEUROSHARD_INLINE static void headOne(const PackedHead &head,
                                        const double *sums, float *out) {
    alignas(64) float logs[kMaxSumWidth];
    alignas(64) float units[kMaxHeadHidden];
    for (size_t k = 0; k < kMaxSumWidth; ++k)
      logs[k] = k < head.sums ? static_cast<float>(sums[k] + kLogFloor) : 1;
    // The first bound tells the compiler that whole vectors fit.
    for (size_t k = 0; k < kMaxSumWidth && k < head.sums; k += Lanes) {
      Floats value;
      load(logs + k, value);
      logarithm(value);
      store(value, logs + k);
    }
    affineBody(head.hidden, logs, units);
    float result[2] = {head.outputBias[0], head.outputBias[1]};
    for (size_t j = 0; j < head.hidden.out; ++j) {
      float unit = units[j] > 0 ? units[j] : 0;
      result[0] += unit * head.outputWeight[j * 2];
      result[1] += unit * head.outputWeight[j * 2 + 1];
    }
    out[0] = logs[0] + result[0];
    out[kBlockRows] = logs[1] + result[1];
  }

  NEUROSHARD_INLINE static void headRowsBody(const PackedHead &head,
                                             const double *sums, size_t stride,
                                             size_t rows, float *out) {
    if (rows >= kFewestBlockRows)
      return headBlock(head, sums, stride, rows, out);
    for (size_t r = 0; r < rows; ++r)
      headOne(head, sums + r * stride, out + r);
  }

  NEUROSHARD_INLINE static void exponentialsBody(const float *x, size_t count,
                                                 float *y) {
    for (size_t i = 0; i < count; i += Lanes) {
      size_t rest = std::min(Lanes, count - i) * sizeof(float);
      Floats value = {};
      std::memcpy(&value, x + i, rest);
      exponential(value);
      std::memcpy(y + i, &value, rest);
    }
  }
};

/// With AVX-512 two vectors of rows take the registers.
template <size_t Lanes> using Loops = Kernels<Lanes, Lanes == 16 ? 2 : 4>;

} // namespace

void dense::affine(InstructionSet instructions, const PackedLayer &layer,
                   const float *x, float *y) {
  runFor(instructions, [&](auto lanes) NEUROSHARD_INLINE {
    Loops<lanes>::affineBody(layer, x, y);
  });
}

void dense::headRows(InstructionSet instructions, const PackedHead &head,
                     const double *sums, size_t stride, size_t rows,
                     float *out) {
  runFor(instructions, [&](auto lanes) NEUROSHARD_INLINE {
    Loops<lanes>::headRowsBody(head, sums, stride, rows, out);
  });
}

void dense::exponentials(InstructionSet instructions, const float *x,
                         size_t count, float *y) {
  runFor(instructions, [&](auto lanes) NEUROSHARD_INLINE {
    Loops<lanes>::exponentialsBody(x, count, y);
  });
}
