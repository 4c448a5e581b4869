//===- Metrics.cpp - Relative error and Kendall's tau ---------------------===//

#include "neuroshard/Training/Metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

using namespace neuroshard;

double neuroshard::meanRelativeError(std::span<const double> predicted,
                                     std::span<const double> measured) {
  double sum = 0;
  for (size_t i = 0; i < measured.size(); ++i)
    sum += std::abs(predicted[i] - measured[i]) / measured[i];
  return measured.empty() ? 0 : sum / static_cast<double>(measured.size());
}

double neuroshard::meanRelativeDifference(std::span<const double> a,
                                          std::span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::abs(a[i] - b[i]) / (0.5 * (a[i] + b[i]));
  return a.empty() ? 0 : sum / static_cast<double>(a.size());
}

namespace {

/// Pairs (i, j) that `same` calls equal, in a sequence where equal elements are
/// neighbours.
template <typename Same> int64_t tiedPairs(size_t count, Same same) {
  int64_t pairs = 0, run = 0;
  for (size_t i = 1; i < count; ++i) {
    run = same(i - 1, i) ? run + 1 : 0;
    pairs += run;
  }
  return pairs;
}

/// Sorts `values` and returns how many pairs were in descending order.
int64_t sortCountingInversions(std::span<double> values,
                               std::span<double> scratch) {
  size_t count = values.size();
  if (count < 2)
    return 0;
  size_t half = count / 2;
  int64_t inversions =
      sortCountingInversions(values.first(half), scratch.first(half)) +
      sortCountingInversions(values.subspan(half), scratch.subspan(half));
  size_t left = 0, right = half;
  for (size_t i = 0; i < count; ++i) {
    bool takeRight =
        left == half || (right < count && values[right] < values[left]);
    if (takeRight)
      inversions += static_cast<int64_t>(half - left);
    scratch[i] = takeRight ? values[right++] : values[left++];
  }
  std::copy(scratch.begin(), scratch.begin() + static_cast<long>(count),
            values.begin());
  return inversions;
}

} // namespace

double neuroshard::kendallTau(std::span<const double> a,
                              std::span<const double> b) {
  size_t count = a.size();
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    return a[i] != a[j] ? a[i] < a[j] : b[i] < b[j];
  });
  int64_t tiedA = tiedPairs(
      count, [&](size_t i, size_t j) { return a[order[i]] == a[order[j]]; });
  int64_t tiedBoth = tiedPairs(count, [&](size_t i, size_t j) {
    return a[order[i]] == a[order[j]] && b[order[i]] == b[order[j]];
  });
  std::vector<double> sorted(count), scratch(count);
  for (size_t i = 0; i < count; ++i)
    sorted[i] = b[order[i]];
  int64_t discordant = sortCountingInversions(sorted, scratch);
  int64_t tiedB = tiedPairs(
      count, [&](size_t i, size_t j) { return sorted[i] == sorted[j]; });

  int64_t n = static_cast<int64_t>(count);
  int64_t all = n * (n - 1) / 2;
  double norm = std::sqrt(static_cast<double>(all - tiedA)) *
                std::sqrt(static_cast<double>(all - tiedB));
  if (norm == 0)
    return 0;
  int64_t difference = all - tiedA - tiedB + tiedBoth - 2 * discordant;
  return static_cast<double>(difference) / norm;
}
