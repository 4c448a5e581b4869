//===- AccessStatistics.h - Reuse of a table's ids --------------*- C++ -*-===//

#ifndef NEUROSHARD_MODEL_ACCESSSTATISTICS_H
#define NEUROSHARD_MODEL_ACCESSSTATISTICS_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neuroshard {

/// A point of the curve "the hottest rowShare of the rows get lookupShare of
/// the lookups"; both in [0, 1].
struct RowMassQuantile {
  double rowShare = 0;
  double lookupShare = 0;

  bool operator==(const RowMassQuantile &) const = default;
};

inline constexpr int kReuseBins = 17;
/// Bin i of a reuse histogram: ids seen more than kReuseBinUpper[i - 1] and at
/// most kReuseBinUpper[i] times; the last bin is open (stored as 0).
inline constexpr std::array<int64_t, kReuseBins> kReuseBinUpper = {
    1,   2,    4,    8,    16,   32,    64,    128, 256,
    512, 1024, 2048, 4096, 8192, 16384, 32768, 0};

/// How often an id of a bin is seen, at least and at most; the open last bin
/// counts as ending at twice its beginning.
struct ReuseRange {
  int64_t least = 1;
  int64_t most = 1;

  constexpr double middle() const {
    return 0.5 * static_cast<double>(least + most);
  }
};
constexpr ReuseRange reuseRange(size_t bin) {
  int64_t least = bin == 0 ? 1 : kReuseBinUpper[bin - 1] + 1;
  return {least, bin + 1 == kReuseBins ? 2 * least : kReuseBinUpper[bin]};
}

/// How far the shares of a reuse histogram may be from a sum of 1: published
/// histograms are rounded to three digits.
inline constexpr double kHistogramTolerance = 0.02;

/// How the ids of a table repeat within one batch.
struct AccessStatistics {
  /// Of the distinct ids of a batch, the share in each bin; sums to 1.
  std::array<double, kReuseBins> reuse = {};
  /// Global batch at which it was measured.
  int64_t batch = 0;
  /// Optional; ascending in both members.
  std::vector<RowMassQuantile> rowMass;
  /// Whether the rows are in the order of their use, those with most lookups
  /// first, so that rowMass says what the first rows get. A fact about the
  /// table, not about a batch.
  bool rowsByUse = false;

  bool operator==(const AccessStatistics &) const = default;
};

} // namespace neuroshard

#endif // NEUROSHARD_MODEL_ACCESSSTATISTICS_H
