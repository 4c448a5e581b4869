//===- IRToPlan.cpp - A plan op as the planner's plan ---------------------===//

#include "neuroshard/Support/Printable.h"
#include "neuroshard/Transforms/PlannerConversion.h"

#include "ProvenanceKeys.h"

using namespace mlir;
using namespace neuroshard;

using ir::PlanOp;
using ir::ShardOp;
using ir::TopologyOp;

static Shard shardFrom(ShardOp op) {
  Shard shard;
  shard.name = op.getName().str();
  shard.table = op.getTable().str();
  shard.rowBegin = op.getRowBegin();
  shard.rowEnd = op.getRowEnd();
  shard.colBegin = op.getColBegin();
  shard.colEnd = op.getColEnd();
  shard.devices.assign(op.getDevices().begin(), op.getDevices().end());
  shard.tier = op.getTier();
  shard.cache = op.getCacheSpec();
  shard.route = op.getRoute();
  shard.syncEvery = op.getSyncEvery();
  return shard;
}

void neuroshard::fixShards(PlanOp plan, ShardingProblem &problem) {
  for (ShardOp op : plan.getBody().getOps<ShardOp>())
    problem.constraints.fixedShards.push_back(shardFrom(op));
}

/// `settings` is a list of (name, value) pairs, since a dictionary would lose
/// their order.
static bool readSettings(Attribute value, Provenance &provenance) {
  auto list = dyn_cast<ArrayAttr>(value);
  if (!list)
    return false;
  for (Attribute item : list) {
    auto pair = dyn_cast<ArrayAttr>(item);
    if (!pair || pair.size() != 2 || !isa<StringAttr>(pair[0]) ||
        !isa<StringAttr>(pair[1]))
      return false;
    provenance.settings.emplace_back(cast<StringAttr>(pair[0]).str(),
                                     cast<StringAttr>(pair[1]).str());
  }
  return true;
}

static bool readText(Attribute value, std::string &out) {
  auto text = dyn_cast<StringAttr>(value);
  if (text)
    out = text.str();
  return static_cast<bool>(text);
}

static bool readNumber(Attribute value, std::optional<double> &out) {
  auto number = dyn_cast<FloatAttr>(value);
  if (number)
    out = number.getValueAsDouble();
  return static_cast<bool>(number);
}

static bool readSeed(Attribute value, uint64_t &out) {
  auto seed = dyn_cast<IntegerAttr>(value);
  if (!seed || !seed.getType().isUnsignedInteger(64))
    return false;
  out = seed.getValue().getZExtValue();
  return true;
}

/// False for a key that is unknown or has a value of the wrong type.
static bool readEntry(NamedAttribute entry, ShardingPlan &plan) {
  llvm::StringRef key = entry.getName();
  Attribute value = entry.getValue();
  Provenance &provenance = plan.provenance;
  if (key == provenance_keys::kAlgorithm)
    return readText(value, provenance.algorithm);
  if (key == provenance_keys::kObjective)
    return readText(value, provenance.objective);
  if (key == provenance_keys::kCostModel)
    return readText(value, provenance.costModel);
  if (key == provenance_keys::kFingerprint)
    return readText(value, plan.fingerprint);
  if (key == provenance_keys::kPredictedCostMs)
    return readNumber(value, provenance.predictedCostMs);
  if (key == provenance_keys::kLowerBoundMs)
    return readNumber(value, provenance.lowerBoundMs);
  if (key == provenance_keys::kSeed)
    return readSeed(value, provenance.seed);
  return key == provenance_keys::kSettings && readSettings(value, provenance);
}

FailureOr<ShardingPlan> neuroshard::planFromIR(PlanOp op) {
  auto topology = SymbolTable::lookupNearestSymbolFrom<TopologyOp>(
      op, op.getTopologyAttr());
  if (!topology)
    return emitError(op.getLoc(),
                     "the plan must be in a module with its topology");
  ShardingPlan plan;
  plan.deviceCount = static_cast<int>(topology.getNumDevices());
  plan.optimizerSemantics = op.getSemantics();
  if (std::optional<DictionaryAttr> provenance = op.getProvenance())
    for (NamedAttribute entry : *provenance)
      if (!readEntry(entry, plan))
        return emitError(op.getLoc(),
                         "provenance has an unknown or unusable entry '")
               << printable(entry.getName().getValue())
               << "': " << entry.getValue();
  for (ShardOp shard : op.getBody().getOps<ShardOp>())
    plan.shards.push_back(shardFrom(shard));
  return plan;
}
