//===- PlanCoverage.cpp - Check that shards cover tables exactly once -----===//

#include "PlanCoverage.h"

#include "neuroshard/Support/Printable.h"

#include "llvm/ADT/APInt.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace neuroshard;
using namespace neuroshard::ir;

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

LogicalResult neuroshard::verifyCovered(PlanOp plan, TableOp table,
                                        ArrayRef<ShardOp> shards) {
  llvm::APInt covered = areaOf(shards), whole = areaOf(table);
  if (covered == whole)
    return success();
  InFlightDiagnostic diagnostic =
      plan.emitOpError("must cover every table, but shards of '@")
      << printable(table.getSymName()) << "' cover "
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
