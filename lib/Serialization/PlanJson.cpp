//===- PlanJson.cpp - Plans as JSON ---------------------------------------===//

#include "PlanJson.h"

#include "JsonPrinter.h"
#include "ShardJson.h"
#include "neuroshard/Serialization/Json.h"

using namespace neuroshard;
using namespace neuroshard::json;

static Json writeProvenance(const Provenance &provenance) {
  Json json;
  json["algorithm"] = provenance.algorithm;
  json["objective"] = provenance.objective;
  json["cost_model"] = provenance.costModel;
  if (provenance.predictedCostMs)
    json["predicted_cost_ms"] = *provenance.predictedCostMs;
  if (provenance.lowerBoundMs)
    json["lower_bound_ms"] = *provenance.lowerBoundMs;
  json["seed"] = provenance.seed;
  if (!provenance.settings.empty())
    json["settings"] = Json::array();
  for (const auto &[name, value] : provenance.settings)
    json["settings"].push_back({{"name", name}, {"value", value}});
  return json;
}

static Provenance readProvenance(Reader &reader, const Json &value,
                                 const Path &path) {
  Provenance provenance;
  Object object(reader, value, path);
  object.required("algorithm", provenance.algorithm);
  object.required("objective", provenance.objective);
  object.required("cost_model", provenance.costModel);
  object.optional("predicted_cost_ms", provenance.predictedCostMs);
  object.optional("lower_bound_ms", provenance.lowerBoundMs);
  object.optional("seed", provenance.seed);
  if (const Json *settings = object.find("settings"))
    reader.list(*settings, Path(path, "settings"),
                [&](const Json &item, const Path &where) {
                  Object entry(reader, item, where);
                  auto &setting = provenance.settings.emplace_back();
                  entry.required("name", setting.first);
                  if (entry.required("value", setting.second) &&
                      setting.first == kWireType &&
                      !parseWireType(setting.second))
                    reader.error(Path(where, "value"),
                                 "expected " + choicesOf<WireType>() +
                                     ", got: '" + setting.second + "'");
                });
  return provenance;
}

Json neuroshard::json::toJson(const ShardingPlan &plan) {
  Json json;
  json["schema"] = kPlanSchema;
  json["device_count"] = plan.deviceCount;
  json["optimizer_semantics"] = toString(plan.optimizerSemantics);
  if (!plan.fingerprint.empty())
    json["table_fingerprint"] = plan.fingerprint;
  if (plan.provenance != Provenance())
    json["provenance"] = writeProvenance(plan.provenance);
  json["shards"] = Json::array();
  for (const Shard &shard : plan.shards)
    json["shards"].push_back(writeShard(shard));
  return json;
}

std::string neuroshard::writePlan(const ShardingPlan &plan) {
  return print(json::toJson(plan));
}

Expected<ShardingPlan> neuroshard::json::planOf(const Json &value) {
  Diagnostics errors;
  Reader reader(errors);
  ShardingPlan plan;
  {
    Path path;
    Object object(reader, value, path);
    readSchema(object, kPlanSchema);
    object.required("device_count", plan.deviceCount);
    object.name("optimizer_semantics", plan.optimizerSemantics,
                parseOptimizerSemantics);
    object.optional("table_fingerprint", plan.fingerprint);
    if (const Json *provenance = object.find("provenance"))
      plan.provenance =
          readProvenance(reader, *provenance, Path(path, "provenance"));
    if (const Json *shards = object.findRequired("shards"))
      reader.list(*shards, Path(path, "shards"),
                  [&](const Json &item, const Path &where) {
                    plan.shards.push_back(readShard(reader, item, where));
                  });
  }
  if (!errors.empty())
    return tl::unexpected(std::move(errors));
  return plan;
}

Expected<ShardingPlan> neuroshard::parsePlan(std::string_view text) {
  Expected<Json> root = parse(text);
  if (!root)
    return tl::unexpected(root.error());
  return json::planOf(*root);
}

Expected<ShardingPlan> neuroshard::readPlan(const std::string &path) {
  return readAs(path, parsePlan);
}
