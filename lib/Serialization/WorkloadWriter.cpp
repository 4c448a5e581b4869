//===- WorkloadWriter.cpp - Writing a workload as JSON --------------------===//

#include "JsonPrinter.h"
#include "ShardJson.h"
#include "TopologyJson.h"
#include "neuroshard/Serialization/Json.h"

using namespace neuroshard;
using namespace neuroshard::json;

namespace {

Json writeOptimizer(const Optimizer &optimizer) {
  Optimizer defaults;
  defaults.kind = optimizer.kind;
  if (optimizer == defaults)
    return toString(optimizer.kind);
  Json json;
  json["kind"] = toString(optimizer.kind);
  for (const NumberSetting &setting : kNumberSettings)
    if (optimizer.*setting.value != defaults.*setting.value)
      json[setting.name] = optimizer.*setting.value;
  if (optimizer.weightDecayMode != WeightDecayMode::Default)
    json["weight_decay_mode"] = toString(optimizer.weightDecayMode);
  if (optimizer.stochasticRounding)
    json["stochastic_rounding"] = true;
  if (optimizer.catchUp)
    json["catch_up"] = true;
  return json;
}

Json writeAccess(const AccessStatistics &access) {
  Json json;
  json["batch"] = access.batch;
  json["reuse"] = access.reuse;
  for (const RowMassQuantile &point : access.rowMass)
    json["row_mass"].push_back(
        {{"row_share", point.rowShare}, {"lookup_share", point.lookupShare}});
  if (access.rowsByUse)
    json["rows_by_use"] = true;
  return json;
}

Json writeTable(const Table &table) {
  Json json;
  json["name"] = table.name;
  json["rows"] = table.rows;
  json["dim"] = table.dim;
  json["type"] = toString(table.elementType);
  json["optimizer"] = writeOptimizer(table.optimizer);
  if (table.hashed)
    json["hashed"] = true;
  if (table.dynamicIds)
    json["dynamic_ids"] = true;
  if (table.idCandidates != 0)
    json["id_candidates"] = table.idCandidates;
  if (table.access)
    json["access"] = writeAccess(*table.access);
  return json;
}

Json writeFeature(const ShardingProblem &problem, const Feature &feature) {
  Json json;
  json["name"] = feature.name;
  json["table"] = problem.tables[static_cast<size_t>(feature.table)].name;
  json["pooling"] = toString(feature.pooling);
  json["mean_pooling"] = feature.meanPooling;
  if (feature.p99Pooling != 0)
    json["p99_pooling"] = feature.p99Pooling;
  if (feature.presence != 1)
    json["presence"] = feature.presence;
  if (feature.batch != 0)
    json["batch"] = feature.batch;
  if (feature.weighted)
    json["weighted"] = true;
  if (feature.needsWeightGradient)
    json["needs_weight_gradient"] = true;
  return json;
}

Json writeSnapshot(const ShardingProblem &problem, const Snapshot &snapshot) {
  Json json;
  json["name"] = snapshot.name;
  json["weight"] = snapshot.weight;
  for (const FeatureStatistics &statistics : snapshot.features)
    json["features"].push_back(
        {{"feature",
          problem.features[static_cast<size_t>(statistics.feature)].name},
         {"mean_pooling", statistics.meanPooling},
         {"p99_pooling", statistics.p99Pooling},
         {"presence", statistics.presence}});
  for (const TableStatistics &statistics : snapshot.tables)
    json["tables"].push_back(
        {{"table", problem.tables[static_cast<size_t>(statistics.table)].name},
         {"access", writeAccess(statistics.access)}});
  return json;
}

Json writeBatch(const Batch &batch) {
  Json json;
  json["global_size"] = batch.globalSize;
  json["id_type"] = toString(batch.idType);
  json["output_type"] = toString(batch.outputType);
  json["wire_type"] = toString(batch.wireType);
  json["input_copies"] = batch.inputCopies;
  if (batch.backwards != Batch().backwards)
    json["backwards"] = batch.backwards;
  return json;
}

class ConstraintWriter {
public:
  explicit ConstraintWriter(const ShardingProblem &problem)
      : problem(problem) {}

  Json write() const;

private:
  const std::string &name(int table) const {
    return problem.tables[static_cast<size_t>(table)].name;
  }
  Json names(const std::vector<int> &tables) const {
    Json json = Json::array();
    for (int table : tables)
      json.push_back(name(table));
    return json;
  }

  const ShardingProblem &problem;
};

Json ConstraintWriter::write() const {
  const Constraints &constraints = problem.constraints;
  Json json = Json::object();
  for (const PinConstraint &pin : constraints.pins)
    json["pins"].push_back(
        {{"table", name(pin.table)}, {"devices", pin.devices}});
  for (const ForbidConstraint &forbid : constraints.forbids)
    json["forbids"].push_back(
        {{"table", name(forbid.table)}, {"devices", forbid.devices}});
  for (const std::vector<int> &set : constraints.coLocate)
    json["co_locate"].push_back(names(set));
  for (const std::vector<int> &set : constraints.separate)
    json["separate"].push_back(names(set));
  for (const TableConstraint &table : constraints.tables) {
    Json &entry = json["tables"].emplace_back();
    entry["table"] = name(table.table);
    for (ShardingKind kind : table.allowedKinds)
      entry["allowed_kinds"].push_back(toString(kind));
    entry["min_width"] = table.minWidth;
    if (table.cacheShare > 0)
      entry["cache_share"] = table.cacheShare;
    if (table.tier)
      entry["tier"] = toString(*table.tier);
    if (table.syncEvery != 0)
      entry["sync_every"] = table.syncEvery;
  }
  if (Json reserved = writeReserves(constraints.reserves); !reserved.empty())
    json["reserves"] = std::move(reserved);
  for (const Shard &shard : constraints.fixedShards)
    json["fixed_shards"].push_back(writeShard(shard));
  return json;
}

} // namespace

std::string neuroshard::writeWorkload(const ShardingProblem &problem) {
  Json json;
  json["schema"] = kWorkloadSchema;
  if (!problem.source.empty())
    json["source"] = problem.source;
  json["batch"] = writeBatch(problem.batch);
  if (problem.mode != StepMode::Training)
    json["mode"] = toString(problem.mode);
  json["memory_model"] = toString(problem.memoryModel);
  json["target"] = toString(problem.target);
  json["optimizer_semantics"] = toString(problem.optimizerSemantics);
  if (problem.cacheLoadFactor != 0)
    json["cache_load_factor"] = problem.cacheLoadFactor;
  if (Json constraints = ConstraintWriter(problem).write();
      !constraints.empty())
    json["constraints"] = std::move(constraints);
  if (problem.topology != Topology())
    json["topology"] = writeTopology(problem.topology);
  json["tables"] = Json::array();
  for (const Table &table : problem.tables)
    json["tables"].push_back(writeTable(table));
  json["features"] = Json::array();
  for (const Feature &feature : problem.features)
    json["features"].push_back(writeFeature(problem, feature));
  for (const Snapshot &snapshot : problem.snapshots)
    json["snapshots"].push_back(writeSnapshot(problem, snapshot));
  return print(json);
}
