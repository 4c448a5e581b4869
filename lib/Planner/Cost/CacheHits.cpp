//===- CacheHits.cpp - Expected hits of a row cache -----------------------===//

#include "neuroshard/Planner/CacheHits.h"

#include "RowUses.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace neuroshard;

namespace {

/// Rows of which each is used by a batch with one probability.
struct UsedRows {
  double rows;
  double used;
};

/// Rows that are there if each is for `batches` batches after its last use.
double rowsThere(const std::vector<UsedRows> &groups, double batches) {
  double rows = 0;
  for (const UsedRows &group : groups)
    rows += group.rows * -std::expm1(batches * std::log1p(-group.used));
  return rows;
}

/// The number of batches for which LRU keeps a row.
double keptBatches(const std::vector<UsedRows> &groups, double places) {
  double low = 0, high = 1;
  while (rowsThere(groups, high) < places && high < 1e15)
    high *= 2;
  for (int i = 0; i < 100; ++i) {
    double middle = (low + high) / 2;
    (rowsThere(groups, middle) < places ? low : high) = middle;
  }
  return high;
}

double hitsOfLru(const std::vector<UsedRows> &groups, double places) {
  double batches = keptBatches(groups, places), hits = 0;
  for (const UsedRows &group : groups)
    hits += group.rows * group.used *
            -std::expm1(batches * std::log1p(-group.used));
  return hits;
}

/// Hits if the rows that are used most stay, and those that the last batch has
/// fetched of the others; `groups` are in the order of their use.
double hitsOfHottest(const std::vector<UsedRows> &groups, double places,
                     double fetched) {
  double hits = 0, others = 0, twice = 0; // of others: used, and used again
  for (const UsedRows &group : groups) {
    double kept = std::clamp(places, 0.0, group.rows);
    hits += kept * group.used;
    places -= kept;
    others += (group.rows - kept) * group.used;
    twice += (group.rows - kept) * group.used * group.used;
  }
  return others > 0 ? hits + fetched * twice / others : hits;
}

/// The rows that a batch fetches have places until those of the next one take
/// them; the others are for the hottest.
double hitsOfLfu(std::vector<UsedRows> groups, double places, double used) {
  std::ranges::sort(groups, std::greater(), &UsedRows::used);
  double low = 0, high = used; // of the rows that a batch fetches
  for (int i = 0; i < 100; ++i) {
    double fetched = (low + high) / 2;
    bool isMore =
        used - hitsOfHottest(groups, places - fetched, fetched) > fetched;
    (isMore ? low : high) = fetched;
  }
  return used - high;
}

} // namespace

CacheUse neuroshard::expectedCacheUse(const Table &table, int64_t rows,
                                      const CacheSpec &cache, double lookups,
                                      double tableLookups) {
  auto all = static_cast<double>(rows);
  double share = all / static_cast<double>(table.rows);
  double scale = tableLookups > 0 ? lookups / (share * tableLookups) : 0;
  std::vector<UsedRows> groups;
  for (const RowGroup &group : rowUses(table, tableLookups)) {
    double used = -std::expm1(-scale * group.uses);
    // Its logarithm is finite.
    groups.push_back({group.rows * share, std::min(used, 1 - 1e-12)});
  }
  CacheUse use;
  for (const UsedRows &group : groups)
    use.rows += group.rows * group.used;
  auto places = static_cast<double>(cache.rows);
  if (places >= all)
    use.hits = use.rows;
  else
    use.hits = cache.policy == CachePolicy::Lru
                   ? hitsOfLru(groups, places)
                   : hitsOfLfu(groups, places, use.rows);
  use.hits = std::min(use.hits, use.rows);
  return use;
}
