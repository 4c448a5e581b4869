//===- Manifest.cpp - Reads manifest.json ---------------------------------===//
//
// Turns JSON into the Manifest structure, checking types and ranges on the
// way; what holds between the parts is checked in ManifestCheck.cpp.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/JsonValue.h"
#include "neuroshard/Model/Target.h"

#include <utility>

namespace neuroshard::runtime {
namespace {

using Value = JsonValue;

constexpr const char *schemaId = "neuroshard.manifest/1";

// So that the elements of a table can be counted in 64 bits.
constexpr int64_t maxRows = int64_t(1) << 40;
constexpr int64_t maxDim = int64_t(1) << 20;

ElementType readElementType(const Value &value) {
  return value.oneOf<ElementType>({{"f32", ElementType::F32},
                                   {"f16", ElementType::F16},
                                   {"bf16", ElementType::BF16}});
}

OptimizerSpec readOptimizer(const Value &value) {
  OptimizerSpec spec;
  if (value.isNull())
    return spec;
  spec.kind = value["kind"].oneOf<OptimizerKind>(
      {{"sgd", OptimizerKind::Sgd},
       {"adagrad", OptimizerKind::Adagrad},
       {"rowwise_adagrad", OptimizerKind::RowwiseAdagrad},
       {"adam", OptimizerKind::Adam}});
  if (spec.kind == OptimizerKind::Adam) {
    spec.beta1 = value["beta1"].number();
    spec.beta2 = value["beta2"].number();
    if (!(spec.beta1 >= 0 && spec.beta1 < 1))
      value["beta1"].wrong("a number in [0, 1)");
    if (!(spec.beta2 >= 0 && spec.beta2 < 1))
      value["beta2"].wrong("a number in [0, 1)");
  }
  if (spec.kind == OptimizerKind::Adagrad ||
      spec.kind == OptimizerKind::RowwiseAdagrad)
    spec.initialAccumulator = value["initial_accumulator"].number();
  return spec;
}

TableSpec readTable(const Value &value) {
  TableSpec table;
  table.name = value["name"].text();
  table.rows = value["rows"].integer(1, maxRows);
  table.dim = value["dim"].integer(1, maxDim);
  table.elementType = readElementType(value["element_type"]);
  table.optimizer = readOptimizer(value["optimizer"]);
  return table;
}

LookupSpec readLookup(const Value &value, const Manifest &manifest,
                      const ExchangeSpec &exchange) {
  LookupSpec lookup;
  lookup.table = value["table"].index(manifest.tables.size());
  lookup.feature = value["feature"].index(exchange.features.size());
  lookup.pooling = value["pooling"].oneOf<Pooling>({{"sum", Pooling::Sum},
                                                    {"mean", Pooling::Mean},
                                                    {"none", Pooling::None}});
  lookup.weighted = value["weighted"].boolean();
  if (lookup.weighted && !exchange.weighted)
    value["weighted"].wrong("false, as the exchange has no weights");
  if (lookup.weighted && !lookup.pooled())
    value["weighted"].wrong("false for a lookup without pooling");
  if (Value padding = value["padding_idx"]; !padding.isNull())
    lookup.paddingIdx =
        padding.integer(0, manifest.tables[lookup.table].rows - 1);
  lookup.resultType = readElementType(value["result_type"]);
  return lookup;
}

ExchangeSpec readExchange(const Value &value, const Manifest &manifest) {
  ExchangeSpec exchange;
  exchange.input = value["input"].text();
  exchange.idBytes = value["id_type"].oneOf<int32_t>({{"i32", 4}, {"i64", 8}});
  exchange.weighted = value["weighted"].boolean();
  exchange.features =
      value["features"].list([](const Value &item) { return item.text(); });
  if (exchange.features.empty())
    value["features"].wrong("at least one feature");
  exchange.lookups = value["lookups"].list(
      [&](const Value &item) { return readLookup(item, manifest, exchange); });
  return exchange;
}

Range readRange(const Value &value, int64_t size) {
  std::vector<int64_t> bounds =
      value.list([&](const Value &item) { return item.integer(0, size); });
  if (bounds.size() != 2 || bounds[0] >= bounds[1])
    value.wrong("[begin, end] with begin < end");
  return {bounds[0], bounds[1]};
}

ShardSpec readShard(const Value &value, const Manifest &manifest) {
  ShardSpec shard;
  shard.name = value["name"].text();
  shard.table = value["table"].index(manifest.tables.size());
  const TableSpec &table = manifest.tableOf(shard);
  shard.rows = readRange(value["rows"], table.rows);
  shard.cols = readRange(value["cols"], table.dim);
  // Those who write a manifest by hand may leave the tier out.
  if (value.has("tier")) {
    std::optional<Tier> tier = parseTier(value["tier"].text());
    if (!tier || !runsTier(Target::Native, *tier))
      value["tier"].wrong(
          "\"hbm\", the only tier that runtimes keep shards in");
  }
  shard.devices = value["devices"].list([&](const Value &item) {
    return item.index(size_t(manifest.numDevices));
  });
  if (shard.devices.empty())
    value["devices"].wrong("at least one device");
  return shard;
}

LookupBinding readLookupBinding(const Value &value, const Manifest &manifest,
                                const DeviceBinding &binding) {
  std::vector<Value> parts = value.list([](const Value &item) { return item; });
  if (parts.size() != 3)
    value.wrong("[exchange, lookup, slot]");
  LookupBinding result;
  result.exchange = parts[0].index(manifest.exchanges.size());
  result.lookup =
      parts[1].index(manifest.exchanges[result.exchange].lookups.size());
  result.slot = parts[2].index(binding.slots.size());
  return result;
}

DeviceBinding readBinding(const Value &value, const Manifest &manifest) {
  DeviceBinding binding;
  binding.program = value["program"].index(manifest.programs.size());
  binding.slots = value["slots"].list(
      [&](const Value &item) { return item.index(manifest.shards.size()); });
  binding.lookups = value["lookups"].list([&](const Value &item) {
    return readLookupBinding(item, manifest, binding);
  });
  return binding;
}

void readGroups(const Value &root, Manifest &manifest) {
  manifest.groups.resize(1);
  for (int32_t device = 0; device < manifest.numDevices; ++device)
    manifest.groups[0].push_back(device);
  if (root.has("groups"))
    manifest.groups = root["groups"].list([&](const Value &group) {
      return group.list([&](const Value &item) {
        return item.index(size_t(manifest.numDevices));
      });
    });
  manifest.places.assign(size_t(manifest.numDevices), {-1, 0});
  int64_t named = 0;
  bool good = true;
  for (size_t g = 0; g < manifest.groups.size(); ++g) {
    const std::vector<int32_t> &group = manifest.groups[g];
    good &= group.size() == manifest.groups[0].size();
    for (size_t m = 0; m < group.size(); ++m, ++named) {
      good &= manifest.places[size_t(group[m])].group < 0;
      manifest.places[size_t(group[m])] = {int32_t(g), int32_t(m)};
    }
  }
  if (!good || named != manifest.numDevices)
    root["groups"].wrong("groups of one size that name every device once");
}

Manifest readManifest(const Value &root) {
  Manifest manifest;
  root["schema"].oneOf<bool>({{schemaId, true}});
  manifest.numDevices =
      static_cast<int32_t>(root["devices"].integer(1, 1 << 20));
  manifest.exactOptimizers = root["optimizer_semantics"].oneOf<bool>(
      {{"exact", true}, {"per_shard", false}});
  if (root.has("wire_type"))
    manifest.wireType = readElementType(root["wire_type"]);
  readGroups(root, manifest);
  manifest.tables = root["tables"].list(readTable);
  manifest.exchanges = root["exchanges"].list(
      [&](const Value &item) { return readExchange(item, manifest); });
  manifest.shards = root["shards"].list(
      [&](const Value &item) { return readShard(item, manifest); });
  manifest.programs = root["programs"].list([](const Value &item) {
    return ProgramSpec{item["library"].text(),
                       item.has("gpu_xxh3") ? item["gpu_xxh3"].text() : ""};
  });
  manifest.bindings = root["bindings"].list(
      [&](const Value &item) { return readBinding(item, manifest); });
  if (manifest.bindings.size() != size_t(manifest.numDevices))
    root["bindings"].wrong(std::to_string(manifest.numDevices) +
                           " bindings, one per device");
  return manifest;
}

} // namespace

int OptimizerSpec::numElementStates() const {
  if (kind == OptimizerKind::Adam)
    return 2;
  return kind == OptimizerKind::Adagrad ? 1 : 0;
}

int OptimizerSpec::numRowStates() const {
  return kind == OptimizerKind::RowwiseAdagrad ? 1 : 0;
}

bool Manifest::needsNormExchange(const ShardSpec &shard) const {
  return exactOptimizers &&
         tableOf(shard).optimizer.kind == OptimizerKind::RowwiseAdagrad &&
         columnSplitTables[size_t(shard.table)];
}

Manifest parseManifest(const std::string &text) {
  nlohmann::json document = parseJson(text, "manifest");
  Manifest manifest = readManifest(Value(document, "manifest"));
  checkManifest(manifest);
  if (manifest.exchanges.size() > 1)
    for (ExchangeSpec &exchange : manifest.exchanges)
      exchange.where.append("input \"").append(exchange.input).append("\": ");
  manifest.columnSplitTables.resize(manifest.tables.size());
  for (const ShardSpec &shard : manifest.shards)
    if (shard.cols.size() < manifest.tableOf(shard).dim)
      manifest.columnSplitTables[size_t(shard.table)] = true;
  return manifest;
}

} // namespace neuroshard::runtime
