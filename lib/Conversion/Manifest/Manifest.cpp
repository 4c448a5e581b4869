//===- Manifest.cpp - Writes manifest.json --------------------------------===//

#include "neuroshard/Conversion/Manifest/Manifest.h"

#include <nlohmann/json.hpp>

namespace neuroshard::manifest {

using Json = nlohmann::ordered_json;

template <typename T> static Json orNull(const std::optional<T> &value) {
  return value ? Json(*value) : Json(nullptr);
}

/// A list of structs.
template <typename T> static Json list(const std::vector<T> &values) {
  Json json = Json::array();
  for (const T &value : values)
    json.push_back(toJson(value));
  return json;
}

static Json toJson(const Optimizer &optimizer) {
  return {{"kind", optimizer.kind},
          {"eps", optimizer.eps},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"initial_accumulator", optimizer.initialAccumulator},
          {"weight_decay", optimizer.weightDecay}};
}

static Json toJson(const Table &table) {
  return {{"name", table.name},
          {"rows", table.rows},
          {"dim", table.dim},
          {"element_type", table.elementType},
          {"optimizer",
           table.optimizer ? toJson(*table.optimizer) : Json(nullptr)}};
}

static Json toJson(const Lookup &lookup) {
  return {{"table", lookup.table},
          {"feature", lookup.feature},
          {"pooling", lookup.pooling},
          {"weighted", lookup.weighted},
          {"padding_idx", orNull(lookup.paddingIdx)},
          {"result_type", lookup.resultType}};
}

static Json toJson(const Exchange &exchange) {
  return {{"input", exchange.input},
          {"id_type", exchange.idType},
          {"weighted", exchange.weighted},
          {"features", exchange.features},
          {"lookups", list(exchange.lookups)}};
}

static Json toJson(const Shard &shard) {
  return {{"name", shard.name}, {"table", shard.table},
          {"rows", shard.rows}, {"cols", shard.cols},
          {"tier", shard.tier}, {"devices", shard.devices}};
}

static Json toJson(const Binding &binding) {
  return {{"program", binding.program},
          {"slots", binding.slots},
          {"lookups", binding.lookups}};
}

static Json toJson(const Value &value) {
  Json json = {{"kind", value.kind}};
  if (value.kind == "device" || value.kind == "handle")
    return json;
  if (value.kind == "jagged") {
    json["id_type"] = value.type;
    json["weighted"] = value.weighted;
    json["features"] = value.features;
    if (value.exchange)
      json["exchange"] = *value.exchange;
    return json;
  }
  json["type"] = value.type;
  if (value.kind == "scalar")
    return json;
  json["shape"] = value.shape;
  if (value.kind == "tensor")
    return json;
  json["table"] = value.table;
  if (value.kind == "state")
    json["state"] = value.state;
  return json;
}

static Json functions(const std::vector<Function> &functions) {
  Json json = Json::object();
  for (const Function &function : functions)
    json[function.name] = {{"args", list(function.arguments)},
                           {"results", list(function.results)}};
  return json;
}

std::string writeManifest(const Manifest &manifest) {
  Json programs = Json::array();
  for (const Program &program : manifest.programs) {
    programs.push_back({{"library", program.library}});
    if (!program.gpuHash.empty())
      programs.back()["gpu_xxh3"] = program.gpuHash;
  }
  Json json = {{"schema", kSchema},
               {"target_cpu", manifest.targetCpu},
               {"devices", manifest.devices},
               {"tables", list(manifest.tables)},
               {"optimizer_semantics", manifest.optimizerSemantics},
               {"wire_type", manifest.wireType},
               {"exchanges", list(manifest.exchanges)},
               {"shards", list(manifest.shards)},
               {"programs", programs},
               {"bindings", list(manifest.bindings)},
               {"functions", functions(manifest.functions)}};
  if (!manifest.groups.empty())
    json["groups"] = manifest.groups;
  if (!manifest.referenceLibrary.empty())
    json["reference"] = {{"library", manifest.referenceLibrary},
                         {"functions", functions(manifest.referenceFunctions)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace neuroshard::manifest
