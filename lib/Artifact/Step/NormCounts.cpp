//===- NormCounts.cpp - Norms that owners of columns exchange -------------===//

#include "NormCounts.h"

#include "neuroshard/Artifact/CopyReaders.h"

#include <algorithm>

namespace neuroshard {

/// Shards of each table that exchange norms with others: those of some columns.
static std::vector<std::vector<const ShardSpec *>>
shardsWithNorms(const ExchangePlan &plan) {
  std::vector<bool> needsNorms = plan.tablesWithNormExchange();
  std::vector<std::vector<const ShardSpec *>> ofTable(plan.tables.size());
  for (const ShardSpec &shard : plan.shards)
    if (needsNorms[static_cast<size_t>(shard.table)] &&
        shard.cols.size() < plan.tableOf(shard).dim)
      ofTable[static_cast<size_t>(shard.table)].push_back(&shard);
  return ofTable;
}

/// In ascending order of rows.
static std::vector<const ShardSpec *>
byRows(std::vector<const ShardSpec *> shards) {
  std::stable_sort(
      shards.begin(), shards.end(),
      [](const ShardSpec *a, const ShardSpec *b) { return a->rows < b->rows; });
  return shards;
}

MostNorms::MostNorms(const ExchangePlan &plan,
                     const std::vector<ExchangeLayout> &layouts,
                     const StepLoad &load)
    : hasCopies(plan.tablesWithCopies()), load(load) {
  for (size_t x = 0; x < layouts.size(); ++x)
    for (const DeviceRange &alike : load.exchanges[x].alike())
      for (size_t b = 0; b < layouts[x].buckets.size(); ++b) {
        const BucketLayout &bucket = layouts[x].buckets[b];
        int32_t table =
            plan.exchanges[x].lookups[static_cast<size_t>(bucket.lookup)].table;
        ids[{table, bucket.rows}] += load.exchanges[x].ids(alike.begin, b) *
                                     static_cast<int64_t>(alike.size());
      }
}

int64_t MostNorms::of(const ShardSpec &shard) const {
  if (hasCopies[static_cast<size_t>(shard.table)])
    return load.distinctRows(shard.table, shard.rows, {});
  auto found = ids.find({shard.table, shard.rows});
  return std::min(found == ids.end() ? 0 : found->second, shard.rows.size());
}

namespace {

/// The norms that the owners of one table's columns send each other.
class TableNorms {
public:
  /// `perRow`: norms of a row.
  TableNorms(const DeviceGroups &groups, int64_t perRow,
             const std::vector<const ShardSpec *> &shards,
             const MostNorms &most, const StepLoad &load, Engine engine,
             const PairReceiver &add)
      : groups(groups), perRow(perRow), shards(byRows(shards)), most(most),
        load(load), engine(engine), add(add) {}

  void count() const {
    for (size_t a = 0; a < shards.size(); ++a) {
      send(*shards[a], *shards[a]);
      for (size_t b = a + 1;
           b < shards.size() && shards[b]->rows.begin < shards[a]->rows.end;
           ++b) {
        send(*shards[a], *shards[b]);
        send(*shards[b], *shards[a]);
      }
    }
  }

private:
  /// From the nearest copy of one shard to each of the other.
  void send(const ShardSpec &from, const ShardSpec &to) const {
    for (int32_t receiver : to.devices)
      send(from, nearestCopy(groups, from.devices, receiver), to, receiver);
  }

  void send(const ShardSpec &from, int32_t sender, const ShardSpec &to,
            int32_t receiver) const {
    if (sender == receiver)
      return; // stays there
    bool isBound = engine == Engine::Gpu && from.rows == to.rows;
    Range common{std::max(from.rows.begin, to.rows.begin),
                 std::min(from.rows.end, to.rows.end)};
    int64_t rows =
        isBound ? most.of(from) : load.distinctRows(from.table, common, {});
    add(static_cast<size_t>(sender), static_cast<size_t>(receiver),
        rows * perRow * static_cast<int64_t>(sizeof(float)));
  }

  const DeviceGroups &groups;
  int64_t perRow;
  std::vector<const ShardSpec *> shards;
  const MostNorms &most;
  const StepLoad &load;
  Engine engine;
  const PairReceiver &add;
};

} // namespace

void countNorms(const ExchangePlan &plan,
                const std::vector<ExchangeLayout> &layouts,
                const StepLoad &load, Engine engine, const PairReceiver &add) {
  MostNorms most(plan, layouts, load);
  DeviceGroups groups(plan);
  for (const std::vector<const ShardSpec *> &shards : shardsWithNorms(plan))
    if (!shards.empty())
      TableNorms(groups, plan.tableOf(*shards.front()).normsPerRow(), shards,
                 most, load, engine, add)
          .count();
}

} // namespace neuroshard
