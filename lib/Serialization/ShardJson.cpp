//===- ShardJson.cpp - Shards in workload and plan files ------------------===//

#include "ShardJson.h"

using namespace neuroshard;
using namespace neuroshard::json;

Shard neuroshard::json::readShard(Reader &reader, const Json &value,
                                  const Path &path) {
  Shard shard;
  Object object(reader, value, path);
  object.required("name", shard.name);
  object.required("table", shard.table);
  auto readRange = [&](const char *key, int64_t &begin, int64_t &end) {
    const Json *range = object.findRequired(key);
    if (!range)
      return;
    Path where(path, key);
    if (!range->is_array() || range->size() != 2)
      return reader.error(where, "expected [begin, end]");
    reader.read((*range)[0], Path(where, size_t{0}), begin);
    reader.read((*range)[1], Path(where, size_t{1}), end);
  };
  readRange("rows", shard.rowBegin, shard.rowEnd);
  readRange("cols", shard.colBegin, shard.colEnd);
  if (const Json *devices = object.findRequired("devices"))
    reader.list(*devices, Path(path, "devices"),
                [&](const Json &item, const Path &where) {
                  reader.read(item, where, shard.devices.emplace_back());
                });
  object.name("tier", shard.tier, parseTier);
  object.optional("cache_rows", shard.cache.rows);
  if (shard.cache.rows < 0)
    reader.error(Path(path, "cache_rows"),
                 "expected at least 0 rows, got: " +
                     std::to_string(shard.cache.rows));
  object.name("cache_policy", shard.cache.policy, parseCachePolicy);
  object.name("route", shard.route, parseRoute);
  object.optional("sync_every", shard.syncEvery);
  return shard;
}

Json neuroshard::json::writeShard(const Shard &shard) {
  Json json;
  json["name"] = shard.name;
  json["table"] = shard.table;
  json["rows"] = {shard.rowBegin, shard.rowEnd};
  json["cols"] = {shard.colBegin, shard.colEnd};
  json["devices"] = shard.devices;
  json["tier"] = toString(shard.tier);
  if (shard.cache.rows != 0)
    json["cache_rows"] = shard.cache.rows;
  if (shard.cache != CacheSpec())
    json["cache_policy"] = toString(shard.cache.policy);
  if (shard.route != Route::Auto)
    json["route"] = toString(shard.route);
  if (shard.syncEvery != 0)
    json["sync_every"] = shard.syncEvery;
  return json;
}
