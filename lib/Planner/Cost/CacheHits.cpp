//===- CacheHits.cpp - Expected hits of a row cache -----------------------===//

#include "neuroshard/Planner/CacheHits.h"

#include "LfuReplay.h"
#include "RowUses.h"
#include "neuroshard/Model/LookupShares.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace neuroshard;

namespace {

/// Of a row of a group, log(1 - used).
std::vector<double> logsUnused(const std::vector<UsedRows> &groups) {
  std::vector<double> logs;
  for (const UsedRows &group : groups)
    logs.push_back(std::log1p(-group.used));
  return logs;
}

/// The number of batches for which LRU keeps a row: the rows that are there if
/// each is for T batches after its last use, rows x (1 - (1 - used)^T), are as
/// many as the places. Their number is concave in T, so that Newton's method
/// comes to it from below.
double keptBatches(const std::vector<UsedRows> &groups,
                   const std::vector<double> &logs, double places) {
  constexpr double kMost = 1e15;
  double batches = 0;
  for (int i = 0; i < 200; ++i) {
    double rows = 0, slope = 0;
    for (size_t k = 0; k < groups.size(); ++k) {
      double gone = std::exp(batches * logs[k]);
      rows += groups[k].rows * -std::expm1(batches * logs[k]);
      slope -= groups[k].rows * logs[k] * gone;
    }
    double step = slope > 0 ? (places - rows) / slope : kMost;
    batches = std::min(batches + step, kMost);
    if (step <= 1e-12 * batches || batches >= kMost)
      break;
  }
  return batches;
}

double hitsOfLru(const std::vector<UsedRows> &groups, double places) {
  std::vector<double> logs = logsUnused(groups);
  double batches = keptBatches(groups, logs, places), hits = 0;
  for (size_t k = 0; k < groups.size(); ++k)
    hits += groups[k].rows * groups[k].used * -std::expm1(batches * logs[k]);
  return hits;
}

double hitsOfLfu(const std::vector<UsedRows> &groups, double places) {
  std::vector<double> rates = lfuHitRates(groups, places);
  double hits = 0;
  for (size_t i = 0; i < groups.size(); ++i)
    hits += groups[i].rows * groups[i].used * rates[i];
  return hits;
}

} // namespace

RowDemand::RowDemand(const Table &table, double lookups, double batch)
    : tableRows(static_cast<double>(table.rows)), inOrder(hasRowsByUse(table)) {
  for (const RowGroup &group : rowUses(table, lookups, batch)) {
    double used = -std::expm1(-group.uses);
    // Its logarithm is finite.
    groups.push_back({group.rows, std::min(used, 1 - 1e-12)});
  }
}

CacheUse RowDemand::use(int64_t begin, int64_t end,
                        const CacheSpec &cache) const {
  auto all = static_cast<double>(end - begin);
  std::vector<UsedRows> used;
  CacheUse use;
  double first = 0;
  for (const Group &group : groups) {
    double last = first + group.rows;
    double rows = inOrder ? std::min(static_cast<double>(end), last) -
                                std::max(static_cast<double>(begin), first)
                          : group.rows / tableRows * all;
    first = last;
    if (inOrder && rows <= 0)
      continue;
    used.push_back({rows, group.used});
    use.rows += rows * group.used;
  }
  auto places = static_cast<double>(cache.rows);
  if (places >= all)
    use.hits = use.rows;
  else
    use.hits = cache.policy == CachePolicy::Lru ? hitsOfLru(used, places)
                                                : hitsOfLfu(used, places);
  use.hits = std::min(use.hits, use.rows);
  return use;
}
