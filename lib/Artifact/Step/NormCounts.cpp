//===- NormCounts.cpp - Norms that owners of columns exchange -------------===//

#include "NormCounts.h"

#include <algorithm>

namespace neuroshard {

std::vector<std::vector<const ShardSpec *>>
shardsWithNorms(const ExchangePlan &plan) {
  std::vector<bool> needsNorms = plan.tablesWithNormExchange();
  std::vector<std::vector<const ShardSpec *>> ofTable(plan.tables.size());
  for (const ShardSpec &shard : plan.shards)
    if (needsNorms[static_cast<size_t>(shard.table)] &&
        shard.cols.size() < plan.tableOf(shard).dim)
      ofTable[static_cast<size_t>(shard.table)].push_back(&shard);
  return ofTable;
}

bool haveEqualRows(const std::vector<const ShardSpec *> &shards) {
  for (const ShardSpec *a : shards)
    for (const ShardSpec *b : shards)
      if (a->rows != b->rows && a->rows.overlaps(b->rows))
        return false;
  return true;
}

int64_t mostNorms(const ExchangePlan &plan,
                  const std::vector<ExchangeLayout> &layouts,
                  const StepLoad &load, const ShardSpec &shard) {
  int64_t ids = 0;
  for (size_t x = 0; x < layouts.size(); ++x)
    for (size_t b = 0; b < layouts[x].buckets.size(); ++b) {
      const BucketLayout &bucket = layouts[x].buckets[b];
      int32_t table =
          plan.exchanges[x].lookups[static_cast<size_t>(bucket.lookup)].table;
      if (table == shard.table && bucket.rows == shard.rows)
        for (const std::vector<int64_t> &ofRank : load.exchanges[x].idsOfBucket)
          ids += ofRank[b];
    }
  return std::min(ids, shard.rows.size());
}

void countNorms(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine,
                const std::function<void(size_t, size_t, int64_t)> &add) {
  for (const std::vector<const ShardSpec *> &shards : shardsWithNorms(plan)) {
    bool areAligned = engine == Engine::Gpu && haveEqualRows(shards);
    for (const ShardSpec *from : shards)
      for (const ShardSpec *to : shards) {
        int32_t sender = from->devices.front(), receiver = to->devices.front();
        bool staysHere = sender == receiver && engine == Engine::Cpu;
        if (staysHere || !from->rows.overlaps(to->rows))
          continue;
        Range common{std::max(from->rows.begin, to->rows.begin),
                     std::min(from->rows.end, to->rows.end)};
        int64_t rows = areAligned ? mostNorms(plan, layouts, load, *from)
                                  : load.distinctRows(from->table, common);
        add(static_cast<size_t>(sender), static_cast<size_t>(receiver),
            rows * static_cast<int64_t>(sizeof(float)));
      }
  }
}

} // namespace neuroshard
