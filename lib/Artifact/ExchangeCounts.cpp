//===- ExchangeCounts.cpp - Sizes of one step's messages ------------------===//

#include "ExchangeCounts.h"

#include "neuroshard/Artifact/IdPayload.h"

#include <algorithm>

namespace neuroshard {

ExchangeCounts::ExchangeCounts(const ExchangeSpec &spec,
                               const ExchangeLoad &load)
    : spec(spec), load(load), count(load.batches.size()),
      likeBefore(count, false) {
  for (size_t rank = 1; rank < count; ++rank)
    likeBefore[rank] = load.batches[rank] == load.batches[rank - 1] &&
                       load.idsOfBucket[rank] == load.idsOfBucket[rank - 1];
}

int64_t ExchangeCounts::idsOfAll(const StreamLayout &stream) const {
  int64_t ids = 0;
  for (size_t rank = 0; rank < count; ++rank)
    ids += idsOf(stream, rank);
  return ids;
}

int64_t ExchangeCounts::payloadBytes(const StreamSet &set, size_t rank) const {
  std::vector<int64_t> ids;
  for (const StreamLayout &stream : set.streams)
    ids.push_back(idsOf(stream, rank));
  IdPayload payload(set, load.batches[rank], spec.idBytes());
  payload.placeIds(ids);
  return payload.bytes();
}

Block ExchangeCounts::blockOf(const StreamSet &set, size_t rank) const {
  return makeBlock(set, load.batches[rank], [&](size_t stream) {
    return idsOf(set.streams[stream], rank);
  });
}

int64_t ExchangeCounts::unpackedIdBytes(const StreamSet &set,
                                        size_t rank) const {
  int64_t bytes = 0;
  for (const StreamLayout &stream : set.streams)
    bytes += 4 * (stream.pooled ? load.batches[rank] : 1) +
             idsOf(stream, rank) * (spec.idBytes() + (stream.weighted ? 4 : 0));
  return bytes;
}

int64_t ExchangeCounts::paddedValues(const StreamSet &set, size_t rank) const {
  int64_t values = 0;
  for (const EntryLayout &entry : set.entries) {
    const StreamLayout &stream = set.streams[static_cast<size_t>(entry.stream)];
    values += (entry.pooled ? load.batches[rank] : idsOf(stream, rank)) *
              paddedColumns(entry.cols.size());
  }
  return values;
}

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
