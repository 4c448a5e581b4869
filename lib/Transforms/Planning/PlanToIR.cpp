//===- PlanToIR.cpp - The planner's plan as a plan op ---------------------===//

#include "neuroshard/Transforms/PlannerConversion.h"

#include "ProvenanceKeys.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace neuroshard;

using ir::PinOp;
using ir::PlanOp;
using ir::ShardOp;
using ir::TableOp;
using ir::TopologyOp;

namespace {

/// Null when nothing is known.
DictionaryAttr provenanceAttr(const ShardingPlan &plan, Builder &builder) {
  const Provenance &provenance = plan.provenance;
  SmallVector<NamedAttribute> entries;
  auto add = [&](llvm::StringRef key, Attribute value) {
    entries.push_back(builder.getNamedAttr(key, value));
  };
  auto addText = [&](llvm::StringRef key, const std::string &text) {
    if (!text.empty())
      add(key, builder.getStringAttr(text));
  };
  addText(provenance_keys::kAlgorithm, provenance.algorithm);
  addText(provenance_keys::kObjective, provenance.objective);
  addText(provenance_keys::kCostModel, provenance.costModel);
  addText(provenance_keys::kFingerprint, plan.fingerprint);
  if (provenance.predictedCostMs)
    add(provenance_keys::kPredictedCostMs,
        builder.getF64FloatAttr(*provenance.predictedCostMs));
  if (provenance.lowerBoundMs)
    add(provenance_keys::kLowerBoundMs,
        builder.getF64FloatAttr(*provenance.lowerBoundMs));
  if (provenance.seed != 0)
    add(provenance_keys::kSeed,
        builder.getIntegerAttr(builder.getIntegerType(64, /*isSigned=*/false),
                               llvm::APInt(64, provenance.seed)));
  SmallVector<Attribute> settings;
  for (const auto &[name, value] : provenance.settings)
    settings.push_back(builder.getArrayAttr(
        {builder.getStringAttr(name), builder.getStringAttr(value)}));
  if (!settings.empty())
    add(provenance_keys::kSettings, builder.getArrayAttr(settings));
  return entries.empty() ? DictionaryAttr()
                         : builder.getDictionaryAttr(entries);
}

bool isSame(ShardOp op, const Shard &shard) {
  return op.getTable() == llvm::StringRef(shard.table) &&
         op.getRowBegin() == shard.rowBegin && op.getRowEnd() == shard.rowEnd &&
         op.getColBegin() == shard.colBegin && op.getColEnd() == shard.colEnd &&
         llvm::equal(op.getDevices(), shard.devices) &&
         op.getTier() == shard.tier && op.getCacheSpec() == shard.cache &&
         op.getRoute() == shard.route && op.getSyncEvery() == shard.syncEvery;
}

void createShard(OpBuilder &builder, Location loc, const Shard &shard) {
  SmallVector<int64_t> devices(shard.devices.begin(), shard.devices.end());
  ShardOp::create(builder, loc, shard.name, shard.table, shard.rowBegin,
                  shard.rowEnd, shard.colBegin, shard.colEnd, devices,
                  shard.tier, shard.cache.rows, shard.cache.policy, shard.route,
                  shard.syncEvery);
}

} // namespace

LogicalResult neuroshard::planToIR(const ShardingPlan &plan, PlanOp op) {
  Block *body = &op.getBody().front();
  llvm::StringMap<ShardOp> existing;
  for (ShardOp shard : op.getBody().getOps<ShardOp>())
    existing.try_emplace(shard.getName(), shard);
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  for (const Shard &shard : plan.shards) {
    auto found = existing.find(shard.name);
    if (found == existing.end()) {
      createShard(builder, op.getLoc(), shard);
      continue;
    }
    if (!isSame(found->second, shard))
      return found->second.emitOpError("differs from the shard of the same "
                                       "name in the plan to be written");
    found->second->moveBefore(body, body->end());
    existing.erase(found);
  }
  if (!existing.empty())
    return existing.begin()->second.emitOpError(
        "is not in the plan to be written, which must keep it");
  op.setSemantics(plan.optimizerSemantics);
  if (DictionaryAttr provenance = provenanceAttr(plan, builder))
    op.setProvenanceAttr(provenance);
  else
    op.removeProvenanceAttr();
  return success();
}

PlanOp neuroshard::createPlan(ModuleOp module, llvm::StringRef name,
                              TopologyOp topology,
                              OptimizerSemantics semantics) {
  Operation *last = topology;
  for (Operation &op : *module.getBody())
    if (isa<TableOp, TopologyOp>(op))
      last = &op;
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(last);
  auto plan =
      PlanOp::create(builder, topology.getLoc(), name, topology.getSymName(),
                     semantics, /*provenance=*/DictionaryAttr());
  plan.getBody().emplaceBlock();
  return plan;
}
