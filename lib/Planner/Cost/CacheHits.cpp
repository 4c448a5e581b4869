//===- CacheHits.cpp - Expected hits of a row cache -----------------------===//

#include "neuroshard/Planner/CacheHits.h"

#include <algorithm>
#include <cmath>
#include <vector>

using namespace neuroshard;

namespace {

/// Rows that are used alike.
struct RowGroup {
  double rows = 0;
  double used = 0; ///< probability that a batch uses one of them.
};

/// That a batch with so many expected lookups of a row has one.
double usedShare(double lookupsOfRow) { return -std::expm1(-lookupsOfRow); }

std::vector<RowGroup> groupsOfMass(const std::vector<RowMassQuantile> &mass,
                                   double rows, double lookups) {
  std::vector<RowGroup> groups;
  RowMassQuantile last;
  auto add = [&](const RowMassQuantile &next) {
    double share = next.rowShare - last.rowShare;
    double lookupShare = next.lookupShare - last.lookupShare;
    if (share > 0)
      groups.push_back(
          {share * rows, usedShare(lookups * lookupShare / (share * rows))});
    last = next;
  };
  for (const RowMassQuantile &point : mass)
    add(point);
  if (last.rowShare < 1)
    add({1, 1});
  return groups;
}

/// Ids seen several times in a batch are hot rows, each used as often in every
/// batch; those seen once are some of all other rows.
std::vector<RowGroup> groupsOfReuse(const AccessStatistics &access, double rows,
                                    double lookups) {
  double perDistinct = 0;
  for (size_t bin = 0; bin < kReuseBins; ++bin) {
    ReuseRange range = reuseRange(bin);
    perDistinct +=
        access.reuse[bin] * static_cast<double>(range.least + range.most) / 2;
  }
  double distinct = std::min(rows, lookups / std::max(1.0, perDistinct));
  std::vector<RowGroup> groups;
  double hot = 0;
  for (size_t bin = kReuseBins; bin-- > 1;) {
    ReuseRange range = reuseRange(bin);
    double uses = static_cast<double>(range.least + range.most) / 2;
    double count = access.reuse[bin] * distinct / usedShare(uses);
    groups.push_back({count, usedShare(uses)});
    hot += count;
  }
  double others = std::max(0.0, rows - hot);
  double once = std::min(others, access.reuse[0] * distinct);
  if (others > 0)
    groups.push_back({others, once / others});
  return groups;
}

/// Rows that are there if each is for `batches` batches after its last use.
double rowsThere(const std::vector<RowGroup> &groups, double batches) {
  double rows = 0;
  for (const RowGroup &group : groups)
    rows += group.rows * -std::expm1(batches * std::log1p(-group.used));
  return rows;
}

/// The number of batches for which LRU keeps a row.
double keptBatches(const std::vector<RowGroup> &groups, double places) {
  double low = 0, high = 1;
  while (rowsThere(groups, high) < places && high < 1e15)
    high *= 2;
  for (int i = 0; i < 100; ++i) {
    double middle = (low + high) / 2;
    (rowsThere(groups, middle) < places ? low : high) = middle;
  }
  return high;
}

double hitsOfLru(const std::vector<RowGroup> &groups, double places) {
  double batches = keptBatches(groups, places), hits = 0;
  for (const RowGroup &group : groups)
    hits += group.rows * group.used *
            -std::expm1(batches * std::log1p(-group.used));
  return hits;
}

/// Hits if the rows that are used most stay, and those that the last batch has
/// fetched of the others; `groups` are in the order of their use.
double hitsOfHottest(const std::vector<RowGroup> &groups, double places,
                     double fetched) {
  double hits = 0, others = 0, twice = 0; // of others: used, and used again
  for (const RowGroup &group : groups) {
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
double hitsOfLfu(std::vector<RowGroup> groups, double places, double used) {
  std::ranges::sort(groups, std::greater(), &RowGroup::used);
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
  std::vector<RowGroup> groups;
  if (table.access && !table.access->rowMass.empty()) {
    groups = groupsOfMass(table.access->rowMass, all, lookups);
  } else if (table.access) {
    groups = groupsOfReuse(*table.access, static_cast<double>(table.rows),
                           tableLookups);
    for (RowGroup &group : groups)
      group.rows *= share;
  } else {
    groups = {{all, usedShare(lookups / all)}};
  }
  for (RowGroup &group : groups) // its logarithm is finite
    group.used = std::min(group.used, 1 - 1e-12);
  CacheUse use;
  for (const RowGroup &group : groups)
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
