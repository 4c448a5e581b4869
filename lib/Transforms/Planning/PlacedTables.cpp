//===- PlacedTables.cpp - Tables of a module with their shards ------------===//
//---------------------------===//

#include "PlacedTables.h"

#include "neuroshard/Transforms/PlannerConversion.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

FailureOr<PlanOp> neuroshard::requirePlan(ModuleOp module,
                                          llvm::StringRef name) {
  FailureOr<PlanOp> plan = findPlan(module, name);
  if (failed(plan) || *plan)
    return plan;
  if (name.empty())
    return module.emitError("the module has no plan; run neuroshard-plan or "
                            "write one by hand");
  return module.emitError("the module has no plan '@") << name << "'";
}

/// Wide enough for a sum of products of two int64_t.
static llvm::APInt area(int64_t rows, int64_t columns) {
  constexpr unsigned kBits = 192;
  return llvm::APInt(kBits, rows) * llvm::APInt(kBits, columns);
}

static llvm::APInt areaOf(TableOp table) {
  return area(table.getRows(), table.getDim());
}

/// PlanOp::verify() holds that shards lie inside their table and do not
/// overlap. So they cover it if their area is that of the table.
static llvm::APInt areaOf(ArrayRef<ShardOp> shards) {
  llvm::APInt sum = area(0, 0);
  for (ShardOp shard : shards)
    sum += area(shard.getNumRows(), shard.getWidth());
  return sum;
}

static LogicalResult verifyCovered(PlanOp plan, const TablePlacement &placement,
                                   int64_t numDevices) {
  TableOp table = placement.table;
  for (ShardOp shard : placement.shards)
    if (shard.isReplicated() &&
        static_cast<int64_t>(shard.getDevices().size()) != numDevices)
      return shard.emitOpError("a replicated table must be on all ")
             << numDevices << " devices, got: " << shard.getDevices().size();
  llvm::APInt covered = areaOf(placement.shards), whole = areaOf(table);
  if (covered == whole)
    return success();
  InFlightDiagnostic diagnostic =
      plan.emitOpError("must cover every table, but shards of '@")
      << table.getSymName() << "' cover "
      << llvm::toString(covered, 10, /*Signed=*/false) << " of its "
      << llvm::toString(whole, 10, /*Signed=*/false)
      << " elements; neuroshard-plan completes a plan";
  diagnostic.attachNote(table.getLoc()) << "the table is defined here";
  return diagnostic;
}

bool neuroshard::coversAllTables(PlanOp plan) {
  llvm::DenseMap<StringAttr, SmallVector<ShardOp>> shards;
  for (ShardOp shard : plan.getOps<ShardOp>())
    shards[shard.getTableAttr().getAttr()].push_back(shard);
  auto module = plan->getParentOfType<ModuleOp>();
  return llvm::all_of(module.getOps<TableOp>(), [&](TableOp table) {
    return areaOf(shards.lookup(table.getSymNameAttr())) == areaOf(table);
  });
}

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
    if (failed(verifyCovered(plan, table, placement.topology.getNumDevices())))
      return mlir::failure();
    table.replicated = table.shards.front().isReplicated();
    std::optional<OptimizerAttr> optimizer = table.table.getOptimizer();
    bool columnSplit = llvm::any_of(table.shards, [&](ShardOp shard) {
      return shard.getWidth() < static_cast<int64_t>(table.table.getDim());
    });
    table.twoPhase =
        optimizer && needsNormExchange(optimizer->getKind(),
                                       plan.getSemantics(), columnSplit);
  }
  return placement;
}
