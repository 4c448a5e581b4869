//===- PlacedTables.cpp - Tables of a module with their shards ------------===//

#include "PlacedTables.h"

#include "PlanCoverage.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

FailureOr<PlacedTables> PlacedTables::of(PlanOp plan) {
  PlacedTables placement;
  placement.plan = plan;
  auto module = plan->getParentOfType<ModuleOp>();
  placement.topology = module.lookupSymbol<TopologyOp>(plan.getTopology());
  for (auto table : module.getOps<TableOp>())
    placement.tables[table.getSymNameAttr()].table = table;
  for (auto shard : plan.getOps<ShardOp>())
    placement.tables[shard.getTableAttr().getAttr()].shards.push_back(shard);
  for (auto &[name, table] : placement.tables) {
    if (failed(verifyCovered(plan, table.table, table.shards)))
      return mlir::failure();
    bool hasCopies = llvm::any_of(table.shards, [](ShardOp shard) {
      return shard.hasCopies() && shard.getSyncEvery() == 0;
    });
    table.replicated =
        table.shards.front().isReplicated(table.table, placement.topology);
    table.copied = hasCopies && !table.replicated;
    std::optional<OptimizerAttr> optimizer = table.table.getOptimizer();
    bool columnSplit = llvm::any_of(table.shards, [&](ShardOp shard) {
      return shard.getWidth() < table.table.getDim();
    });
    table.twoPhase =
        optimizer && needsNormExchange(optimizer->getKind(),
                                       plan.getSemantics(), columnSplit);
  }
  return placement;
}
