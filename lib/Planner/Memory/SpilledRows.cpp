//===- SpilledRows.cpp - Rows that a row cache has no place for -----------===//

#include "SpilledRows.h"

#include "neuroshard/Model/RowCache.h"

#include <cmath>

using namespace neuroshard;

int64_t neuroshard::spilledRows(int64_t used, int64_t cacheRows) {
  if (used <= 0 || cacheRows <= 0)
    return 0;
  auto sets = static_cast<double>(cacheRows / kCacheWays);
  double mean = static_cast<double>(used) / sets;
  // Of one set: mean - ways + sum over k < ways of (ways - k) P(k).
  double log = -mean, spilled = mean - static_cast<double>(kCacheWays);
  for (int64_t k = 0; k < kCacheWays; ++k) {
    spilled += static_cast<double>(kCacheWays - k) * std::exp(log);
    log += std::log(mean / static_cast<double>(k + 1));
  }
  // What is left of rounding where nothing spills is none.
  return spilled < 1e-9 ? 0 : static_cast<int64_t>(std::ceil(sets * spilled));
}
