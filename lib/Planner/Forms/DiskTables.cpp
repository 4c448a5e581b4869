//===- DiskTables.cpp - Tables on disk where memory is too small ----------===//

#include "DiskTables.h"

#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Planner/CacheHits.h"
#include "neuroshard/Planner/Memory.h"
#include "neuroshard/Planner/ShardWork.h"
#include "neuroshard/Support/Round.h"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace neuroshard;

namespace {

/// Share of the memory that is planned with: devices are not filled alike.
constexpr double kFilled = 0.9;
/// Parts in which what is left is given to caches.
constexpr int kParts = 64;

/// One table that may be on disk.
struct LowerTable {
  size_t table = 0;
  double lookups = 0; ///< of a batch.
  double uniqueRows = 0;
  int64_t inMemory = 0; ///< bytes.
  int64_t rowBytes = 0; ///< of its cache.
  int64_t cacheRows = 0;
  bool isOnDisk = false;
};

class DiskChooser {
public:
  explicit DiskChooser(const ShardingProblem &problem)
      : problem(problem), features(featuresOfTables(problem)) {}

  std::optional<ShardingProblem> run() {
    budget = kFilled * usableBytes();
    describeTables();
    if (!chooseTables())
      return std::nullopt;
    growCaches();
    return withShares();
  }

private:
  double usableBytes() const {
    std::vector<MemoryTerms> base = deviceBaseMemory(problem);
    double bytes = 0;
    for (size_t i = 0; i < base.size(); ++i)
      bytes += static_cast<double>(std::max<int64_t>(
          0, problem.topology.devices[i].memoryBytes - base[i].peakBytes()));
    return bytes;
  }

  bool mayBeOnDisk(size_t table) const {
    const std::string &name = problem.tables[table].name;
    return std::ranges::none_of(
        problem.constraints.fixedShards,
        [&](const Shard &shard) { return shard.table == name; });
  }

  void describeTables() {
    for (size_t i = 0; i < problem.tables.size(); ++i) {
      const Table &table = problem.tables[i];
      Shard shard = wholeOn(table, 0);
      int64_t bytes =
          shardMemory(problem, table, features[i], shard).peakBytes();
      if (!mayBeOnDisk(i)) {
        budget -= static_cast<double>(bytes);
        continue;
      }
      ShardWork work =
          describeShard(problem, static_cast<int>(i), features[i], shard);
      candidates.push_back(
          {i, work.updateLookups, work.updateUniqueRows, bytes,
           cachedRowBytes(optimizerStates(table.optimizer.kind), table.dim,
                          table.elementType),
           0, false});
    }
    // Those first whose bytes are used least.
    std::ranges::stable_sort(candidates, {}, [](const LowerTable &one) {
      return one.uniqueRows / static_cast<double>(one.inMemory);
    });
  }

  /// Of a table on disk with so many rows in its cache.
  int64_t onDiskBytes(const LowerTable &one, int64_t cacheRows) const {
    const Table &table = problem.tables[one.table];
    Shard shard = wholeOn(table, 0);
    shard.tier = Tier::Ssd;
    shard.cache.rows = cacheRows;
    return shardMemory(problem, table, features[one.table], shard).peakBytes();
  }

  int64_t mostRows(const LowerTable &one) const {
    return roundUp(problem.tables[one.table].rows, kCacheWays);
  }

  /// Twice the rows that the batches under way use, so that few spill.
  int64_t leastRows(const LowerTable &one) const {
    auto batches =
        static_cast<double>(std::max<int64_t>(1, problem.batch.inputCopies));
    auto rows = static_cast<int64_t>(std::ceil(2 * batches * one.uniqueRows));
    return std::clamp(roundUp(rows, kCacheWays), kCacheWays, mostRows(one));
  }

  bool chooseTables() {
    double needed = 0;
    for (const LowerTable &one : candidates)
      needed += static_cast<double>(one.inMemory);
    for (LowerTable &one : candidates) {
      if (needed <= budget)
        break;
      int64_t rows = leastRows(one), bytes = onDiskBytes(one, rows);
      if (bytes >= one.inMemory)
        continue;
      one.isOnDisk = true;
      one.cacheRows = rows;
      needed += static_cast<double>(bytes - one.inMemory);
    }
    budget -= needed;
    return budget >= 0 &&
           std::ranges::any_of(candidates, &LowerTable::isOnDisk);
  }

  CacheUse useOf(const LowerTable &one, int64_t cacheRows) const {
    const Table &table = problem.tables[one.table];
    return expectedCacheUse(table, table.rows, {cacheRows, CachePolicy::Lru},
                            one.lookups, one.lookups);
  }

  /// Gives each part of what is left to the cache to which it brings most hits.
  void growCaches() {
    double part = budget / kParts;
    for (int i = 0; i < kParts; ++i) {
      LowerTable *best = nullptr;
      double bestHits = 0;
      int64_t bestRows = 0;
      for (LowerTable &one : candidates) {
        if (!one.isOnDisk || one.cacheRows >= mostRows(one))
          continue;
        auto more =
            static_cast<int64_t>(part / static_cast<double>(one.rowBytes));
        int64_t rows = std::min(one.cacheRows + more / kCacheWays * kCacheWays,
                                mostRows(one));
        double hits = useOf(one, rows).hits - useOf(one, one.cacheRows).hits;
        if (rows > one.cacheRows && hits > bestHits) {
          best = &one;
          bestHits = hits;
          bestRows = rows;
        }
      }
      if (!best)
        return;
      best->cacheRows = bestRows;
    }
  }

  ShardingProblem withShares() const {
    ShardingProblem result = problem;
    for (const LowerTable &one : candidates)
      if (one.isOnDisk)
        constraintOf(result, static_cast<int>(one.table)).cacheShare = std::min(
            1.0, static_cast<double>(one.cacheRows) /
                     static_cast<double>(problem.tables[one.table].rows));
    return result;
  }

  static TableConstraint &constraintOf(ShardingProblem &of, int table) {
    std::vector<TableConstraint> &all = of.constraints.tables;
    auto found = std::ranges::find(all, table, &TableConstraint::table);
    if (found != all.end())
      return *found;
    all.emplace_back().table = table;
    return all.back();
  }

  const ShardingProblem &problem;
  std::vector<std::vector<int>> features;
  std::vector<LowerTable> candidates;
  double budget = 0; ///< bytes of all devices.
};

} // namespace

std::optional<ShardingProblem>
neuroshard::withTablesOnDisk(const ShardingProblem &problem) {
  if (!runsTier(problem.target, Tier::Ssd))
    return std::nullopt;
  return DiskChooser(problem).run();
}

std::vector<std::string>
neuroshard::explainTablesOnDisk(const ShardingProblem &problem) {
  std::vector<std::vector<int>> features = featuresOfTables(problem);
  std::vector<std::string> sentences;
  for (const TableConstraint &constraint : problem.constraints.tables) {
    if (constraint.cacheShare <= 0)
      continue;
    auto index = static_cast<size_t>(constraint.table);
    const Table &table = problem.tables[index];
    Shard whole = wholeOn(table, 0);
    ShardWork work =
        describeShard(problem, constraint.table, features[index], whole);
    auto places = static_cast<int64_t>(constraint.cacheShare *
                                       static_cast<double>(table.rows));
    CacheUse use =
        expectedCacheUse(table, table.rows, {places, CachePolicy::Lru},
                         work.updateLookups, work.updateLookups);
    double rowBytes = static_cast<double>(recordBytes(
        optimizerStates(table.optimizer.kind), table.dim, table.elementType));
    std::ostringstream text;
    text.precision(3);
    text << "table '" << table.name << "' is on disk, with a cache of "
         << 100 * constraint.cacheShare << " % of its rows: a batch finds "
         << 100 * use.hitRate() << " % of the rows that it uses, reads "
         << (use.rows - use.hits) * rowBytes / 1e6
         << " MB, and writes as much, for which there is no price yet";
    sentences.push_back(text.str());
  }
  return sentences;
}
