//===- ShardJson.h - Shards in workload and plan files ----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H
#define NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H

#include "JsonReader.h"
#include "neuroshard/Model/Shard.h"

namespace neuroshard::json {

Shard readShard(Reader &reader, const Json &value, const Path &path);
Json writeShard(const Shard &shard);

} // namespace neuroshard::json

#endif // NEUROSHARD_LIB_SERIALIZATION_SHARDJSON_H
