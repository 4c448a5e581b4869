//===- ReadManifest.cpp - Reads manifest.json -----------------------------===//
//
// Turns JSON into a Manifest and checks types and ranges on the way; what must
// hold between the parts is checked in CheckManifest.cpp.
//
//===----------------------------------------------------------------------===//

#include "ManifestNames.h"
#include "ReadLayout.h"

#include "JsonValue.h"
#include "neuroshard/Artifact/Error.h"
#include "neuroshard/Artifact/InputName.h"
#include "neuroshard/Artifact/Manifest.h"
#include "neuroshard/Model/EnumNames.h"
#include "neuroshard/Model/Limits.h"
#include "neuroshard/Model/Target.h"
#include "neuroshard/Support/ShortestText.h"

#include <algorithm>
#include <set>
#include <utility>

namespace neuroshard {
namespace {

using Value = JsonValue;

// So that the elements of a table can be counted in 64 bits.
constexpr int64_t maxRows = int64_t{1} << 40;
constexpr int64_t maxDim = int64_t{1} << 20;

/// A value that is written by its name in the Model.
template <typename T>
T readName(const Value &value, std::initializer_list<T> all) {
  return value.oneOfNames(all, [](T one) { return toString(one); });
}

ElementType readElementType(const Value &value) {
  return readName(value,
                  {ElementType::F32, ElementType::F16, ElementType::BF16,
                   ElementType::Int8, ElementType::Int4, ElementType::Fp8});
}

ElementType readResultType(const Value &value) {
  return readName(value,
                  {ElementType::F32, ElementType::F16, ElementType::BF16});
}

WireType readWireType(const Value &value) {
  std::optional<WireType> type = parseWireType(value.text());
  if (!type)
    value.wrong(choicesOf<WireType>());
  return *type;
}

OptimizerKind readOptimizerKind(const Value &value) {
  std::optional<OptimizerKind> kind = parseOptimizerKind(value.text());
  if (!kind)
    value.wrong(choicesOf<OptimizerKind>());
  return *kind;
}

std::optional<Optimizer> readOptimizer(const Value &value,
                                       ElementType weights) {
  if (value.isNull())
    return std::nullopt;
  Optimizer optimizer;
  optimizer.kind = readOptimizerKind(value["kind"]);
  // The ranges of a problem's optimizers.
  auto upTo1e30 = [&](const char *field) {
    double number = value[field].number();
    if (!(number >= 0 && number <= 1e30))
      value[field].wrong("a number in [0, 1e30]");
    return number;
  };
  optimizer.eps = upTo1e30("eps");
  auto belowOne = [&](const char *field) {
    double number = value[field].number();
    if (!(number >= 0 && number < 1))
      value[field].wrong("a number in [0, 1)");
    return number;
  };
  optimizer.beta1 = belowOne("beta1");
  optimizer.beta2 = belowOne("beta2");
  optimizer.initialAccumulator = upTo1e30("initial_accumulator");
  optimizer.weightDecay = upTo1e30("weight_decay");
  if (value.has("weight_decay_mode"))
    optimizer.weightDecayMode =
        readName(value["weight_decay_mode"],
                 {WeightDecayMode::Default, WeightDecayMode::L2,
                  WeightDecayMode::Decoupled, WeightDecayMode::AdagradW});
  if (value.has("l1_penalty"))
    optimizer.l1Penalty = upTo1e30("l1_penalty");
  if (value.has("l2_penalty"))
    optimizer.l2Penalty = upTo1e30("l2_penalty");
  if (value.has("eta"))
    optimizer.eta = upTo1e30("eta");
  auto from = [&](const char *field, double least) {
    double number = value[field].number();
    if (!(number >= least && number <= 1e30))
      value[field].wrong("a number from " + shortestText(least) + " to 1e30");
    return number;
  };
  if (value.has("counter_halflife"))
    optimizer.counterHalflife = from("counter_halflife", -2);
  if (value.has("adjustment_iter"))
    optimizer.adjustmentIter = from("adjustment_iter", -1);
  if (value.has("adjustment_ub"))
    optimizer.adjustmentUb = upTo1e30("adjustment_ub");
  if (value.has("max_gradient"))
    optimizer.maxGradient = upTo1e30("max_gradient");
  if (value.has("stochastic_rounding"))
    optimizer.stochasticRounding = value["stochastic_rounding"].boolean();
  if (value.has("catch_up"))
    optimizer.catchUp = value["catch_up"].boolean();
  if (std::optional<SettingError> found = settingError(optimizer, weights))
    value[found->setting].wrong("another value: " + found->message);
  return optimizer;
}

TableSpec readTable(const Value &value) {
  TableSpec table;
  table.name = value["name"].text();
  table.rows = value["rows"].integer(1, maxRows);
  table.dim = value["dim"].integer(1, maxDim);
  table.elementType = readElementType(value["element_type"]);
  table.optimizer = readOptimizer(value["optimizer"], table.elementType);
  return table;
}

ExchangeLookup readLookup(const Value &value, const Manifest &manifest,
                          const ExchangeSpec &exchange) {
  ExchangeLookup lookup;
  lookup.table = value["table"].index(manifest.tables.size());
  lookup.feature = value["feature"].index(exchange.features.size());
  lookup.pooling =
      readName(value["pooling"], {Pooling::Sum, Pooling::Mean, Pooling::None});
  lookup.weighted = value["weighted"].boolean();
  if (lookup.weighted && !exchange.weighted)
    value["weighted"].wrong("false, as the exchange has no weights");
  if (lookup.weighted && !lookup.pooled())
    value["weighted"].wrong("false for a lookup without pooling");
  if (Value padding = value["padding_idx"]; !padding.isNull())
    lookup.paddingIdx =
        padding.integer(0, manifest.tables[lookup.table].rows - 1);
  lookup.resultType = readResultType(value["result_type"]);
  return lookup;
}

ExchangeSpec readExchange(const Value &value, const Manifest &manifest) {
  ExchangeSpec exchange;
  exchange.input = value["input"].text();
  exchange.idType = readName(value["id_type"], {IdType::I32, IdType::I64});
  exchange.weighted = value["weighted"].boolean();
  exchange.features =
      value["features"].list([](const Value &item) { return item.text(); });
  if (exchange.features.empty())
    value["features"].wrong("at least one feature");
  std::set<std::string> names(exchange.features.begin(),
                              exchange.features.end());
  if (names.size() != exchange.features.size())
    value["features"].wrong("each feature once");
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
  shard.devices = value["devices"].list([&](const Value &item) {
    return item.index(static_cast<size_t>(manifest.numDevices));
  });
  if (shard.devices.empty())
    value["devices"].wrong("at least one device");
  std::ranges::sort(shard.devices);
  shard.tier = readName(value["tier"], {Tier::Hbm, Tier::Dram, Tier::Ssd});
  if (value.has("cache_rows"))
    shard.cache.rows = value["cache_rows"].integer(0, table.rows + kCacheWays);
  if (value.has("cache_policy"))
    shard.cache.policy =
        readName(value["cache_policy"], {CachePolicy::Lru, CachePolicy::Lfu});
  if (std::string error = cacheError(shard.tier, shard.cache, shard.rows.size(),
                                     std::ssize(shard.devices));
      !error.empty())
    value.wrong("a sound cache: " + error);
  if (hasRowCache(Target::Native, shard.tier) && shard.cache.rows == 0)
    value.wrong("a cache for a shard in tier " +
                std::string(toString(shard.tier)));
  if (value.has("route"))
    shard.route =
        readName(value["route"], {Route::Auto, Route::Direct, Route::Relay});
  if (value.has("sync_every"))
    shard.syncEvery = value["sync_every"].integer(1, kMaxSyncEvery);
  if (std::string error = syncError(shard.syncEvery, std::ssize(shard.devices));
      !error.empty())
    value.wrong("copies that can drift: " + error);
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

/// Groups of one size that name every device once.
std::vector<std::vector<int32_t>> readGroups(const Value &value,
                                             int32_t numDevices) {
  auto groups = value.list([&](const Value &group) {
    return group.list([&](const Value &item) {
      return item.index(static_cast<size_t>(numDevices));
    });
  });
  std::vector<bool> named(static_cast<size_t>(numDevices), false);
  bool good = !groups.empty();
  for (const std::vector<int32_t> &group : groups) {
    good &= group.size() == groups.front().size();
    for (int32_t device : group) {
      good &= !named[static_cast<size_t>(device)];
      named[static_cast<size_t>(device)] = true;
    }
  }
  if (!good || std::find(named.begin(), named.end(), false) != named.end())
    value.wrong("groups of one size that name every device once");
  return groups;
}

std::string readScalarType(const Value &value) {
  std::string name = value.text();
  if (name.empty())
    value.wrong("the name of a type");
  return name;
}

ValueSpec readValue(const Value &value, const Manifest &manifest) {
  ValueSpec spec;
  std::string kind = value["kind"].text();
  auto known = std::find(kValueKinds.begin(), kValueKinds.end(), kind);
  if (known == kValueKinds.end())
    value["kind"].wrong("a kind of value");
  spec.kind = static_cast<ValueKind>(known - kValueKinds.begin());
  if (spec.kind == ValueKind::Device || spec.kind == ValueKind::Handle)
    return spec;
  if (spec.kind == ValueKind::Jagged) {
    spec.type = readScalarType(value["id_type"]);
    spec.weighted = value["weighted"].boolean();
    spec.features =
        value["features"].list([](const Value &item) { return item.text(); });
    if (!value.has("exchange"))
      return spec;
    spec.exchange = value["exchange"].index(manifest.exchanges.size());
    return spec;
  }
  spec.type = readScalarType(value["type"]);
  if (spec.kind == ValueKind::Scalar)
    return spec;
  spec.shape = value["shape"].list(
      [](const Value &item) { return item.integer(-1, int64_t{1} << 60); });
  if (spec.kind != ValueKind::Tensor)
    spec.table = value["table"].index(manifest.tables.size());
  if (spec.kind == ValueKind::State)
    spec.state =
        static_cast<int32_t>(value["state"].integer(0, kMaxStates - 1));
  return spec;
}

std::vector<FunctionSpec> readFunctions(const Value &value,
                                        const Manifest &manifest) {
  auto readOne = [&](const Value &item) { return readValue(item, manifest); };
  return value.fields([&](const std::string &name, const Value &function) {
    return FunctionSpec{name, function["args"].list(readOne),
                        function["results"].list(readOne),
                        function["touches_tensors"].boolean()};
  });
}

/// The name of a library beside the manifest: what else lies on the machine is
/// not loaded.
std::string readFileName(const Value &value) {
  std::string name = value.text();
  if (name.empty() || name.find('/') != std::string::npos)
    value.wrong("the name of a file beside the manifest");
  return name;
}

std::pair<std::string, std::string> readFileHash(const std::string &name,
                                                 const Value &hash) {
  return {name, hash.text()};
}

Manifest readManifest(const Value &root) {
  Manifest manifest;
  root["schema"].oneOf<bool>({{kManifestSchema, true}});
  manifest.targetCpu = root["target_cpu"].text();
  if (root.has("target_features"))
    manifest.targetFeatures = root["target_features"].list(
        [](const Value &item) { return item.text(); });
  manifest.numDevices =
      static_cast<int32_t>(root["devices"].integer(1, kMaxDevices));
  manifest.optimizerSemantics =
      readName(root["optimizer_semantics"],
               {OptimizerSemantics::Exact, OptimizerSemantics::PerShard});
  if (root.has("wire_type"))
    manifest.wireType = readWireType(root["wire_type"]);
  if (root.has("groups"))
    manifest.groups = readGroups(root["groups"], manifest.numDevices);
  manifest.tables = root["tables"].list(readTable);
  manifest.exchanges = root["exchanges"].list(
      [&](const Value &item) { return readExchange(item, manifest); });
  manifest.shards = root["shards"].list(
      [&](const Value &item) { return readShard(item, manifest); });
  manifest.programs = root["programs"].list([](const Value &item) {
    return ProgramFiles{readFileName(item["library"])};
  });
  manifest.bindings = root["bindings"].list(
      [&](const Value &item) { return readBinding(item, manifest); });
  if (manifest.bindings.size() != static_cast<size_t>(manifest.numDevices))
    root["bindings"].wrong(std::to_string(manifest.numDevices) +
                           " bindings, one per device");
  manifest.functions = readFunctions(root["functions"], manifest);
  if (root.has("reference"))
    manifest.reference = {
        readFileName(root["reference"]["library"]),
        readFunctions(root["reference"]["functions"], manifest)};
  if (root.has("files"))
    for (auto &[name, hash] : root["files"].fields(readFileHash))
      manifest.files[name] = hash;
  if (root.has("weights"))
    manifest.weights = root["weights"].list([&](const Value &item) {
      if (!manifest.files.count(readFileName(item)))
        item.wrong("a file that $.files lists");
      return item.text();
    });
  if (!manifest.weights.empty() &&
      manifest.weights.size() != manifest.shards.size())
    root["weights"].wrong(std::to_string(manifest.shards.size()) +
                          " files, one per shard");
  return manifest;
}

} // namespace

Manifest parseManifest(const std::string &text) {
  nlohmann::json document = parseJson(text, "manifest");
  Manifest manifest = readManifest(Value(document, "manifest"));
  checkManifest(manifest);
  manifest.layouts =
      readLayouts(Value(document, "manifest")["layout"], manifest);
  if (manifest.exchanges.size() > 1)
    for (ExchangeSpec &exchange : manifest.exchanges)
      exchange.where = inputName(exchange);
  return manifest;
}

} // namespace neuroshard
