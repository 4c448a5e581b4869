//===- ShardJson.h - Shards in workload and plan files ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H
#define NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H

#include "JsonReader.h"
#include "neuroshard/Model/Shard.h"

namespace neuroshard::json {

Shard readShard(Reader &reader, const Json &value, const Path &path);
Json writeShard(const Shard &shard);

/// Requires "schema" to be the given one.
void readSchema(Object &object, std::string_view expected);

/// The document as text: readable, one line per shard, table or device.
std::string print(const Json &root);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H
