//===- TablePool.cpp - Tables to draw random shard sets from --------------===//

#include "neuroshard/Collect/TablePool.h"

#include <algorithm>
#include <cmath>
#include <random>

using namespace neuroshard;

namespace {

constexpr size_t kTables = 856;
constexpr int64_t kBatch = 65536;
constexpr double kMeanRows = 4107458;
constexpr double kMeanPooling = 15;
constexpr double kMinRows = 200;
constexpr double kMaxRows = 40e6;

/// Distinct ids per bin over the whole pool: `2021_t856_bs65536` of
/// workloads/dlrm_datasets_locality.json.
constexpr std::array<double, kReuseBins> kPoolReuse = {
    0.473, 0.152, 0.139, 0.112, 0.072, 0.032, 0.011, 0.005, 0.002,
    0.001, 3e-4,  1e-4,  5e-5,  2e-5,  1e-5,  4e-6,  1e-6};

/// Multiplies values until their mean is `mean`, within the limits.
void scaleToMean(std::vector<double> &values, double mean, double low,
                 double high) {
  for (int round = 0; round < 50; ++round) {
    double sum = 0;
    for (double value : values)
      sum += std::clamp(value, low, high);
    double factor = mean * static_cast<double>(values.size()) / sum;
    for (double &value : values)
      value *= factor;
  }
  for (double &value : values)
    value = std::clamp(value, low, high);
}

/// The pool's histogram made hotter (skew > 0) or colder, bin by bin.
AccessStatistics skewedAccess(double skew, double noise,
                              std::mt19937_64 &random, double lookups) {
  std::normal_distribution<double> normal;
  AccessStatistics access;
  access.batch = kBatch;
  double sum = 0;
  for (int i = 0; i < kReuseBins; ++i) {
    size_t bin = static_cast<size_t>(i);
    double low = i == 0 ? 1 : static_cast<double>(kReuseBinUpper[bin - 1]);
    // An id can't be seen more often than there are lookups.
    double value =
        low > lookups
            ? 0
            : kPoolReuse[bin] * std::exp(skew * i + noise * normal(random));
    access.reuse[bin] = value;
    sum += value;
  }
  for (double &share : access.reuse)
    share /= sum;
  return access;
}

} // namespace

TablePool neuroshard::makeTablePool(uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<double> rows, pooling;
  for (size_t i = 0; i < kTables; ++i) {
    // Spread over several orders of magnitude, as the published tables are.
    rows.push_back(std::exp(std::log(2e5) + 2.6 * normal(random)));
    pooling.push_back(std::exp(std::log(4.0) + 1.5 * normal(random)));
  }
  scaleToMean(rows, kMeanRows, kMinRows, kMaxRows);
  scaleToMean(pooling, kMeanPooling, 1, 200);

  TablePool pool;
  auto access = std::make_shared<std::vector<AccessStatistics>>();
  for (size_t i = 0; i < kTables; ++i) {
    pool.tables.push_back({std::llround(rows[i]), pooling[i]});
    access->push_back(
        skewedAccess(0.35 * normal(random), 0.3, random, pooling[i] * kBatch));
  }
  pool.access = std::move(access);
  return pool;
}
