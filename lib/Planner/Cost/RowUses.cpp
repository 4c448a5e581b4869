//===- RowUses.cpp - Access rates of a table's rows -----------------------===//

#include "RowUses.h"

#include "DistinctRows.h"
#include "neuroshard/Model/LookupShares.h"

#include <algorithm>
#include <array>
#include <cmath>

using namespace neuroshard;

namespace {

/// Rows that a batch does not use, and the bins of a reuse histogram.
constexpr size_t kCounts = kReuseBins + 1;
using Counts = std::array<double, kCounts>;

/// That a Poisson distributed number is at most `most`.
double poissonAtMost(int64_t most, double mean) {
  // From here on as a normal distribution.
  constexpr double kLarge = 200;
  if (mean > kLarge)
    return 0.5 * std::erfc((mean - static_cast<double>(most) - 0.5) /
                           std::sqrt(2 * mean));
  double sum = 0, term = std::exp(-mean);
  for (int64_t i = 0; i <= most; ++i) {
    sum += term;
    auto next = static_cast<double>(i + 1);
    term *= mean / next;
    if (next > mean && term < 1e-17) // of 1
      break;
  }
  return std::min(1.0, sum);
}

/// Chances of rows with this rate.
Counts chancesOf(double rate) {
  Counts chances;
  double before = chances[0] = poissonAtMost(0, rate);
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    double atMost = poissonAtMost(reuseRange(bin).most, rate);
    chances[bin + 1] = std::max(0.0, atMost - before);
    before = atMost;
  }
  return chances;
}

/// Means of the counts.
Counts middles() {
  Counts result = {};
  for (size_t bin = 0; bin < kReuseBins; ++bin)
    result[bin + 1] = reuseRange(bin).middle();
  return result;
}

/// Rates of hot rows: 1/2, 1/sqrt(2), 1, sqrt(2), 2, ... to the last bin. Lower
/// ones could not be told from those of the others.
constexpr size_t kHotRates = 2 * kReuseBins + 2;

struct Rate {
  double uses;
  Counts chances;
};

const std::array<Rate, kHotRates> &hotRates() {
  static const std::array<Rate, kHotRates> rates = [] {
    std::array<Rate, kHotRates> made;
    for (size_t i = 0; i < kHotRates; ++i) {
      made[i].uses = std::exp2(0.5 * static_cast<double>(i) - 1);
      made[i].chances = chancesOf(made[i].uses);
    }
    return made;
  }();
  return rates;
}

/// The numbers of rows of each hot rate, and of the others, whose one rate is
/// sought, too.
class ReuseMixture {
public:
  ReuseMixture(const Counts &observed, double rows) : observed(observed) {
    double distinct = rows - observed[0];
    hot.fill(distinct / (kHotRates + 1));
    others = rows - distinct * kHotRates / (kHotRates + 1);
    otherRate = distinct / rows / 2;
  }

  void improve() {
    Counts ofOthers = chancesOf(otherRate), expected = {};
    for (size_t c = 0; c < kCounts; ++c) {
      expected[c] = others * ofOthers[c];
      for (size_t i = 0; i < kHotRates; ++i)
        expected[c] += hot[i] * hotRates()[i].chances[c];
    }
    auto shareOf = [&](double rows, const Counts &chances, size_t c) {
      return expected[c] > 0 ? rows * chances[c] * observed[c] / expected[c]
                             : 0;
    };
    for (size_t i = 0; i < kHotRates; ++i) {
      double rows = 0;
      for (size_t c = 0; c < kCounts; ++c)
        rows += shareOf(hot[i], hotRates()[i].chances, c);
      hot[i] = rows;
    }
    static const Counts means = middles();
    double rows = 0, uses = 0;
    for (size_t c = 0; c < kCounts; ++c) {
      double share = shareOf(others, ofOthers, c);
      rows += share;
      uses += share * means[c];
    }
    others = rows;
    otherRate = rows > 0 ? uses / rows : 0;
  }

  std::vector<RowGroup> groups() const {
    std::vector<RowGroup> result = {{others, otherRate}};
    for (size_t i = 0; i < kHotRates; ++i)
      result.push_back({hot[i], hotRates()[i].uses});
    return result;
  }

private:
  Counts observed;
  std::array<double, kHotRates> hot;
  double others, otherRate;
};

/// In a batch of the size of the histogram's.
std::vector<RowGroup> usesOfReuse(const Table &table, double lookups) {
  const AccessStatistics &access = *table.access;
  auto rows = static_cast<double>(table.rows);
  double distinct =
      distinctRows(table, lookups, static_cast<double>(access.batch));
  Counts observed = {};
  observed[0] = rows;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    observed[bin + 1] = access.reuse[bin] * distinct;
    observed[0] = std::max(0.0, observed[0] - observed[bin + 1]);
  }
  // Hits of replayed ids are then within two points, also at twice the batch.
  constexpr int kSteps = 100;
  ReuseMixture mixture(observed, rows);
  for (int i = 0; i < kSteps; ++i)
    mixture.improve();
  return mixture.groups();
}

std::vector<RowGroup> usesOfMass(const std::vector<RowMassQuantile> &mass,
                                 double rows, double lookups) {
  std::vector<RowGroup> groups;
  RowMassQuantile last;
  auto add = [&](const RowMassQuantile &next) {
    double share = next.rowShare - last.rowShare;
    double lookupShare = next.lookupShare - last.lookupShare;
    if (share > 0)
      groups.push_back({share * rows, lookups * lookupShare / (share * rows)});
    last = next;
  };
  for (const RowMassQuantile &point : mass)
    add(point);
  if (last.rowShare < 1)
    add({1, 1});
  return groups;
}

} // namespace

std::vector<RowGroup> neuroshard::rowUses(const Table &table, double lookups,
                                          double batch) {
  auto rows = static_cast<double>(table.rows);
  if (!table.access)
    return {{rows, lookups / rows}};
  if (!table.access->rowMass.empty())
    return usesOfMass(table.access->rowMass, rows, lookups);
  // The histogram is of a batch of its own size.
  double scale = batch / static_cast<double>(table.access->batch);
  std::vector<RowGroup> groups = usesOfReuse(table, lookups / scale);
  for (RowGroup &group : groups)
    group.uses *= scale;
  return groups;
}

/// Distinct rows among [begin, end) of those that groups of rows in order have.
static double distinctIn(const std::vector<RowGroup> &groups, double begin,
                         double end) {
  double first = 0, distinct = 0;
  for (const RowGroup &group : groups) {
    double last = first + group.rows;
    double common = std::min(end, last) - std::max(begin, first);
    if (common > 0)
      distinct += common * -std::expm1(-group.uses);
    first = last;
  }
  return distinct;
}

RowsShare neuroshard::shareOfRows(const Table &table, int64_t begin,
                                  int64_t end, double lookups, double batch) {
  auto rows = static_cast<double>(table.rows);
  double even = static_cast<double>(end - begin) / rows;
  if (!hasRowsByUse(table) || end - begin == table.rows)
    return {even, even};
  RowsShare share{lookupShareOfRows(table, begin, end), 0};
  std::vector<RowGroup> groups = rowUses(table, lookups, batch);
  double all = distinctIn(groups, 0, rows);
  share.distinct = all > 0 ? distinctIn(groups, static_cast<double>(begin),
                                        static_cast<double>(end)) /
                                 all
                           : even;
  return share;
}
