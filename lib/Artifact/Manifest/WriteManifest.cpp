//===- WriteManifest.cpp - Writes manifest.json ---------------------------===//

#include "ManifestNames.h"
#include "WriteLayout.h"

#include "neuroshard/Artifact/Manifest.h"

#include <nlohmann/json.hpp>

namespace neuroshard {
namespace {

using Json = nlohmann::ordered_json;

template <typename T> Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rangeJson(const Range &range) {
  return Json::array({range.begin, range.end});
}

Json optimizerJson(const std::optional<Optimizer> &optimizer) {
  if (!optimizer)
    return nullptr;
  return {{"kind", toString(optimizer->kind)},
          {"eps", optimizer->eps},
          {"beta1", optimizer->beta1},
          {"beta2", optimizer->beta2},
          {"initial_accumulator", optimizer->initialAccumulator},
          {"weight_decay", optimizer->weightDecay},
          {"weight_decay_mode", toString(optimizer->weightDecayMode)},
          {"l1_penalty", optimizer->l1Penalty},
          {"l2_penalty", optimizer->l2Penalty},
          {"eta", optimizer->eta},
          {"counter_halflife", optimizer->counterHalflife},
          {"adjustment_iter", optimizer->adjustmentIter},
          {"adjustment_ub", optimizer->adjustmentUb},
          {"max_gradient", optimizer->maxGradient},
          {"stochastic_rounding", optimizer->stochasticRounding},
          {"catch_up", optimizer->catchUp}};
}

Json tableJson(const TableSpec &table) {
  return {{"name", table.name},
          {"rows", table.rows},
          {"dim", table.dim},
          {"element_type", toString(table.elementType)},
          {"optimizer", optimizerJson(table.optimizer)}};
}

Json exchangeLookupJson(const ExchangeLookup &lookup) {
  return {{"table", lookup.table},
          {"feature", lookup.feature},
          {"pooling", toString(lookup.pooling)},
          {"weighted", lookup.weighted},
          {"padding_idx", orNull(lookup.paddingIdx)},
          {"result_type", toString(lookup.resultType)}};
}

/// A list of structs, each by `write`.
template <typename T, typename Write>
Json listJson(const std::vector<T> &values, const Write &write) {
  Json json = Json::array();
  for (const T &value : values)
    json.push_back(write(value));
  return json;
}

Json exchangeJson(const ExchangeSpec &exchange) {
  return {{"input", exchange.input},
          {"id_type", toString(exchange.idType)},
          {"weighted", exchange.weighted},
          {"features", exchange.features},
          {"lookups", listJson(exchange.lookups, exchangeLookupJson)}};
}

Json shardJson(const ShardSpec &shard) {
  Json json = {{"name", shard.name},
               {"table", shard.table},
               {"rows", rangeJson(shard.rows)},
               {"cols", rangeJson(shard.cols)},
               {"tier", toString(shard.tier)},
               {"route", toString(shard.route)},
               {"devices", shard.devices}};
  if (shard.hasRowCache()) {
    json["cache_rows"] = shard.cache.rows;
    json["cache_policy"] = toString(shard.cache.policy);
  }
  if (shard.copiesDrift())
    json["sync_every"] = shard.syncEvery;
  return json;
}

Json programJson(const ProgramFiles &program) {
  return {{"library", program.library}};
}

Json bindingJson(const DeviceBinding &binding) {
  Json lookups = Json::array();
  for (const LookupBinding &bound : binding.lookups)
    lookups.push_back(Json::array({bound.exchange, bound.lookup, bound.slot}));
  return {{"program", binding.program},
          {"slots", binding.slots},
          {"lookups", lookups}};
}

Json valueJson(const ValueSpec &value) {
  Json json = {{"kind", nameOf(value.kind)}};
  switch (value.kind) {
  case ValueKind::Device:
  case ValueKind::Handle:
    return json;
  case ValueKind::Jagged:
    json["id_type"] = value.type;
    json["weighted"] = value.weighted;
    json["features"] = value.features;
    if (value.exchange)
      json["exchange"] = *value.exchange;
    return json;
  case ValueKind::Scalar:
    json["type"] = value.type;
    return json;
  case ValueKind::Tensor:
  case ValueKind::Weights:
  case ValueKind::State:
    break;
  }
  json["type"] = value.type;
  json["shape"] = value.shape;
  if (value.kind != ValueKind::Tensor)
    json["table"] = value.table;
  if (value.kind == ValueKind::State)
    json["state"] = value.state;
  return json;
}

Json functionsJson(const std::vector<FunctionSpec> &functions) {
  Json json = Json::object();
  for (const FunctionSpec &function : functions)
    json[function.name] = {{"args", listJson(function.arguments, valueJson)},
                           {"results", listJson(function.results, valueJson)},
                           {"touches_tensors", function.touchesTensors}};
  return json;
}

} // namespace

std::string writeManifest(const Manifest &manifest) {
  Json json = {{"schema", kManifestSchema},
               {"target_cpu", manifest.targetCpu},
               {"target_features", manifest.targetFeatures},
               {"devices", manifest.numDevices},
               {"tables", listJson(manifest.tables, tableJson)},
               {"optimizer_semantics", toString(manifest.optimizerSemantics)},
               {"wire_type", toString(manifest.wireType)},
               {"exchanges", listJson(manifest.exchanges, exchangeJson)},
               {"shards", listJson(manifest.shards, shardJson)},
               {"programs", listJson(manifest.programs, programJson)},
               {"bindings", listJson(manifest.bindings, bindingJson)},
               {"functions", functionsJson(manifest.functions)}};
  json["layout"] = layoutJson(manifest);
  if (!manifest.groups.empty())
    json["groups"] = manifest.groups;
  if (manifest.reference)
    json["reference"] = {
        {"library", manifest.reference->library},
        {"functions", functionsJson(manifest.reference->functions)}};
  if (!manifest.weights.empty())
    json["weights"] = manifest.weights;
  if (!manifest.files.empty())
    json["files"] = manifest.files;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace neuroshard
