//===- CheckManifest.cpp - Checks between the parts of a manifest ---------===//
//
// Coverage of tables by shards, shards by bindings, and lookups by devices.
// A manifest that passes needs no further checks while steps run.
//
//===----------------------------------------------------------------------===//

#include "CheckFunctions.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Model/Drift.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>

namespace neuroshard {

static std::ostream &operator<<(std::ostream &os, const Range &range) {
  return os << "[" << range.begin << ", " << range.end << ")";
}

namespace {

std::string shardPath(const Manifest &manifest, int32_t shard) {
  return "$.shards[" + std::to_string(shard) + "] (\"" +
         manifest.shards[shard].name + "\")";
}

void checkDevices(const Manifest &manifest, int32_t index) {
  const ShardSpec &shard = manifest.shards[index];
  std::set<int32_t> distinct(shard.devices.begin(), shard.devices.end());
  if (distinct.size() != shard.devices.size())
    fail("manifest: ", shardPath(manifest, index),
         ": names a device more than once");
}

/// Shards of one table must not overlap and must add up to the table; both
/// together mean that every element is covered exactly once.
void checkCoverage(const Manifest &manifest, int32_t table,
                   const std::vector<int32_t> &shards) {
  const TableSpec &spec = manifest.tables[table];
  // Sweep over rows: only shards that begin before another ends can overlap.
  std::vector<int32_t> sorted = shards;
  std::sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) {
    return manifest.shards[a].rows < manifest.shards[b].rows;
  });
  int64_t covered = 0; // at most the table: what overlaps is refused first
  for (size_t i = 0; i < sorted.size(); ++i) {
    const ShardSpec &a = manifest.shards[sorted[i]];
    covered += a.rows.size() * a.cols.size();
    for (size_t j = i + 1; j < sorted.size(); ++j) {
      const ShardSpec &b = manifest.shards[sorted[j]];
      if (b.rows.begin >= a.rows.end)
        break;
      if (a.cols.overlaps(b.cols))
        fail("manifest: ", shardPath(manifest, sorted[j]), ": rows ", b.rows,
             " cols ", b.cols, " of table \"", spec.name, "\" overlap with ",
             shardPath(manifest, sorted[i]));
    }
  }
  int64_t whole = spec.rows * spec.dim;
  if (covered != whole)
    fail("manifest: $.tables[", table, "] (\"", spec.name,
         "\"): its shards cover ", covered, " of ", whole,
         " elements; every element must be in exactly one shard");
}

/// Copies of a table drift alike, and not where shards exchange norms.
void checkDrift(const Manifest &manifest) {
  std::vector<bool> withNorms = manifest.tablesWithNormExchange();
  std::vector<std::optional<SyncedCopies>> ofTable(manifest.tables.size());
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    const ShardSpec &shard = manifest.shards[i];
    auto table = static_cast<size_t>(shard.table);
    std::string path = shardPath(manifest, static_cast<int32_t>(i));
    SyncedCopies copies{shard.syncEvery, std::ssize(shard.devices)};
    if (!ofTable[table])
      ofTable[table] = copies;
    std::string error = driftMismatch(*ofTable[table], copies);
    if (const auto &optimizer = manifest.tables[table].optimizer;
        error.empty() && shard.copiesDrift() && optimizer)
      error = optimizerDriftError(*optimizer);
    if (!error.empty())
      fail("manifest: ", path, ": ", error);
    if (shard.copiesDrift() && withNorms[table])
      fail("manifest: ", path, ": copies cannot drift (sync_every ",
           shard.syncEvery, ") where columns of table \"",
           manifest.tables[table].name, "\" exchange norms of rows");
  }
}

void checkShards(const Manifest &manifest) {
  std::vector<std::vector<int32_t>> shardsOfTable(manifest.tables.size());
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    checkDevices(manifest, static_cast<int32_t>(i));
    shardsOfTable[manifest.shards[i].table].push_back(static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < manifest.tables.size(); ++i)
    checkCoverage(manifest, static_cast<int32_t>(i), shardsOfTable[i]);
  checkDrift(manifest);
}

void checkSlots(const Manifest &manifest) {
  std::set<std::pair<int32_t, int32_t>> bound; // (shard, device)
  for (int32_t device = 0; device < manifest.numDevices; ++device) {
    const std::vector<int32_t> &slots = manifest.bindings[device].slots;
    for (size_t slot = 0; slot < slots.size(); ++slot) {
      const ShardSpec &shard = manifest.shards[slots[slot]];
      std::string path = "$.bindings[" + std::to_string(device) + "].slots[" +
                         std::to_string(slot) + "]";
      if (std::find(shard.devices.begin(), shard.devices.end(), device) ==
          shard.devices.end())
        fail("manifest: ", path, ": ", shardPath(manifest, slots[slot]),
             " is not on device ", device);
      if (!bound.insert({slots[slot], device}).second)
        fail("manifest: ", path, ": ", shardPath(manifest, slots[slot]),
             " is bound twice");
    }
  }
  for (size_t i = 0; i < manifest.shards.size(); ++i)
    for (int32_t device : manifest.shards[i].devices)
      if (!bound.count({static_cast<int32_t>(i), device}))
        fail("manifest: ", shardPath(manifest, static_cast<int32_t>(i)),
             ": device ", device, " does not bind it to a slot");
}

/// Every slot of a device has each lookup of its table exactly once.
void checkLookups(const Manifest &manifest, int32_t device) {
  const DeviceBinding &binding = manifest.bindings[device];
  std::string path = "$.bindings[" + std::to_string(device) + "].lookups";
  std::set<std::tuple<int32_t, int32_t, int32_t>> found;
  for (size_t i = 0; i < binding.lookups.size(); ++i) {
    const LookupBinding &entry = binding.lookups[i];
    const ShardSpec &shard = manifest.shards[binding.slots[entry.slot]];
    const ExchangeLookup &lookup =
        manifest.exchanges[entry.exchange].lookups[entry.lookup];
    if (lookup.table != shard.table)
      fail("manifest: ", path, "[", i, "]: the lookup reads table \"",
           manifest.tables[lookup.table].name, "\" but slot ", entry.slot,
           " holds table \"", manifest.tableOf(shard).name, "\"");
    if (!found.insert({entry.exchange, entry.lookup, entry.slot}).second)
      fail("manifest: ", path, "[", i, "]: is there twice");
  }
  for (size_t slot = 0; slot < binding.slots.size(); ++slot)
    for (size_t x = 0; x < manifest.exchanges.size(); ++x)
      for (size_t k = 0; k < manifest.exchanges[x].lookups.size(); ++k) {
        int32_t table = manifest.exchanges[x].lookups[k].table;
        if (table == manifest.shards[binding.slots[slot]].table &&
            !found.count({static_cast<int32_t>(x), static_cast<int32_t>(k),
                          static_cast<int32_t>(slot)}))
          fail("manifest: ", path, ": expected [", x, ", ", k, ", ", slot,
               "] (a lookup of table \"", manifest.tables[table].name,
               "\"), found none");
      }
}

} // namespace

void checkManifest(const Manifest &manifest) {
  checkShards(manifest);
  checkSlots(manifest);
  for (int32_t device = 0; device < manifest.numDevices; ++device)
    checkLookups(manifest, device);
  checkFunctions(manifest);
}

} // namespace neuroshard
