//===- ShardJson.cpp - Shards in workload and plan files ------------------===//

#include "ShardJson.h"

using namespace neuroshard;
using namespace neuroshard::json;

/// Values deeper than this are written on one line.
static constexpr int kIndentedDepth = 2;

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
  return json;
}

void neuroshard::json::readSchema(Object &object, std::string_view expected) {
  std::string schema;
  if (object.required("schema", schema) && schema != expected)
    object.reader.error(Path(object.path, "schema"),
                        "expected '" + std::string(expected) + "', got: '" +
                            schema + "'");
}

static void printValue(const Json &value, int depth, std::string &text) {
  bool nested = !value.empty() && depth < kIndentedDepth &&
                (value.is_object() ||
                 (value.is_array() && value.front().is_structured()));
  if (!nested) {
    text += value.dump(-1, ' ', false, Json::error_handler_t::replace);
    return;
  }
  bool isObject = value.is_object();
  std::string indent(static_cast<size_t>(depth + 1), ' ');
  text += isObject ? "{\n" : "[\n";
  bool first = true;
  for (const auto &item : value.items()) {
    text += first ? "" : ",\n";
    text += indent;
    first = false;
    if (isObject)
      text += Json(item.key())
                  .dump(-1, ' ', false, Json::error_handler_t::replace) +
              ": ";
    printValue(item.value(), depth + 1, text);
  }
  text += '\n';
  text.append(static_cast<size_t>(depth), ' ');
  text += isObject ? '}' : ']';
}

std::string neuroshard::json::print(const Json &root) {
  std::string text;
  printValue(root, 0, text);
  text += '\n';
  return text;
}
