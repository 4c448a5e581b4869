//===- DistinctRows.cpp - Distinct rows that lookups touch ----------------===//

#include "DistinctRows.h"

#include "neuroshard/Model/LookupShares.h"

#include <algorithm>
#include <cmath>

using namespace neuroshard;

namespace {

/// Lookups per distinct id in a batch of `share` of the one the statistics are
/// of. A smaller batch is a random part of it: an id seen m times is still seen
/// with probability 1 - (1 - share)^m. In a larger one the repeats beyond the
/// first grow in proportion.
double expectedReuse(const AccessStatistics &access, double share) {
  double lookups = 0, distinct = 0;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    double ids = access.reuse[bin];
    // How often an id of the bin is seen on average.
    double times = reuseRange(bin).middle();
    lookups += ids * times;
    distinct += share < 1 ? -ids * std::expm1(times * std::log1p(-share)) : ids;
  }
  if (share < 1)
    return std::max(1.0, share * lookups / distinct);
  return 1 + (std::max(1.0, lookups) - 1) * share;
}

} // namespace

double neuroshard::distinctRows(const Table &table, double lookups,
                                double batch) {
  double rows = static_cast<double>(table.rows);
  if (!table.access)
    return -rows * std::expm1(-lookups / rows);
  double share = batch / static_cast<double>(table.access->batch);
  return std::min(rows, lookups / expectedReuse(*table.access, share));
}

double neuroshard::missedRows(const Table &table, double cached, int64_t rows,
                              double lookups, double unique) {
  if (!table.access || table.access->rowMass.empty())
    return unique * (1 - cached);
  return std::min({unique, lookups * (1 - lookupShareOf(table, cached)),
                   static_cast<double>(rows) * (1 - cached)});
}
