//===- PlanRemarks.cpp - Remarks on the decisions of a search -------------===//

#include "PlanRemarks.h"

#include "PlanPlaces.h"

#include "neuroshard/Support/Printable.h"

#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace neuroshard;

static remark::RemarkOpts optionsFor(llvm::StringRef name,
                                     llvm::StringRef plan) {
  return remark::RemarkOpts::name(name)
      .category("neuroshard-plan")
      .function(plan);
}

static std::string costText(const SearchResult &result) {
  double cost = result.breakdown.costMs;
  if (result.lowerBoundMs <= 0)
    return llvm::formatv("predicted cost {0:f3} ms; the cost model knows no "
                         "lower bound",
                         cost)
        .str();
  std::string text =
      llvm::formatv("predicted cost {0:f3} ms, no plan is below {1:f3} ms",
                    cost, result.lowerBoundMs)
          .str();
  return text + llvm::formatv(" ({0:f1} % above)",
                              (cost / result.lowerBoundMs - 1) * 100)
                    .str();
}

std::string neuroshard::describeStep(const CostBreakdown &breakdown) {
  std::string fetch =
      breakdown.fetchMs > 0
          ? llvm::formatv("fetch {0:f3} ms, ", breakdown.fetchMs).str()
          : "";
  return llvm::formatv("input {0:f3} ms, {7}forward {1:f3} ms, exposed forward "
                       "communication {2:f3} ms, dense {3:f3} ms, backward "
                       "communication {4:f3} ms, backward {5:f3} ms, fixed "
                       "{6:f3} ms",
                       breakdown.inputMs, breakdown.maxForwardMs,
                       breakdown.exposedForwardCommunicationMs,
                       breakdown.denseMs, breakdown.backwardCommunicationMs,
                       breakdown.maxBackwardMs, breakdown.fixedMs, fetch)
      .str();
}

static void emitMigrationRemarks(Location loc, const PlanPlaces &places,
                                 llvm::StringRef plan,
                                 const SearchResult &result) {
  if (!result.migration)
    return;
  const Migration &migration = *result.migration;
  remark::analysis(loc, optionsFor("Previous", plan))
      << (migration.previousCostMs
              ? llvm::formatv("the previous plan would cost {0:f3} ms",
                              *migration.previousCostMs)
                    .str()
              : "the previous plan does not serve: " +
                    printable(migration.whyNotPrevious));
  for (const TableMove &move : migration.moves)
    remark::passed(places.ofTable(move.table), optionsFor("Moved", plan))
        << "'" + printable(move.table) + "', " + formatBytes(move.bytes) +
               ": " + move.what;
}

void neuroshard::emitPlanRemarks(ir::PlanOp op, const SearchResult &result) {
  if (!op.getContext()->getRemarkEngine())
    return;
  PlanPlaces places(op);
  Location loc = op.getLoc();
  llvm::StringRef plan = op.getSymName();
  for (const std::string &decision : result.explanation)
    remark::passed(places.of(decision), optionsFor("Decision", plan))
        << printable(decision);
  remark::analysis(loc, optionsFor("Cost", plan)) << costText(result);
  remark::analysis(loc, optionsFor("Step", plan))
      << describeStep(result.breakdown);
  for (const SnapshotCost &snapshot : result.breakdown.snapshots)
    remark::analysis(loc, optionsFor("Snapshot", plan))
        << llvm::formatv("'{0}' ({1:f0} %): {2:f3} ms",
                         printable(snapshot.name), 100 * snapshot.share,
                         snapshot.costMs)
               .str();
  emitMigrationRemarks(loc, places, plan, result);
  for (const std::string &candidate : result.tried)
    remark::analysis(loc, optionsFor("Tried", plan)) << printable(candidate);
  remark::analysis(loc, optionsFor("Stopped", plan)) << result.stopReason;
}

void neuroshard::emitModelRemarks(Location loc, llvm::StringRef plan,
                                  const std::string &model,
                                  const std::vector<std::string> &remarks) {
  if (!loc.getContext()->getRemarkEngine())
    return;
  remark::analysis(loc, optionsFor("Model", plan))
      << "predicted by the cost model '" + printable(model) + "'";
  for (const std::string &text : remarks)
    remark::analysis(loc, optionsFor("Model", plan)) << printable(text);
}

void neuroshard::emitCountsRemark(Location loc, llvm::StringRef plan,
                                  const SearchResult &result, size_t tables,
                                  size_t kept) {
  remark::analysis(loc, optionsFor("Counts", plan)) << remark::add(
      "{0} tables in {1} shards, of which {2} were given; {3} "
      "candidate plans evaluated",
      tables, result.plan.shards.size(), kept, result.evaluations);
}

void neuroshard::emitAssumptionRemarks(
    Location loc, llvm::StringRef plan,
    const std::vector<Assumption> &assumptions) {
  if (!loc.getContext()->getRemarkEngine())
    return;
  for (const Assumption &one : assumptions)
    remark::analysis(loc, optionsFor("Assumption", plan))
        << printable("assumed: " + one.text);
}

void neuroshard::emitKeptRemark(Location loc, llvm::StringRef plan,
                                size_t shards) {
  // One text: each further << would be an argument of its own.
  remark::passed(loc, optionsFor("Kept", plan))
      << "the plan is complete and valid; its " + std::to_string(shards) +
             " shards are kept as they are";
}
