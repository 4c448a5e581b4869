//===- PlanRemarks.h - Remarks on the decisions of a search -----*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANREMARKS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANREMARKS_H

#include "neuroshard/Planner/Assumptions.h"
#include "neuroshard/Planner/Search.h"

#include "neuroshard/Dialect/NeuroShard.h"

namespace neuroshard {

/// "input 0.010 ms, forward 0.200 ms, ...": the parts of a step.
std::string describeStep(const CostBreakdown &breakdown);

/// Emits the result of a search as remarks of the category "neuroshard-plan":
/// decisions as passed, costs and what was tried as analysis. What is about a
/// table is at the table.
void emitPlanRemarks(ir::PlanOp plan, const SearchResult &result);

/// Emits which cost model predicted, and what it says about its predictions
/// (see CostModel::remarks), as analysis.
void emitModelRemarks(mlir::Location loc, llvm::StringRef plan,
                      const std::string &model,
                      const std::vector<std::string> &remarks);

/// Counts what was planned, and what it took.
void emitCountsRemark(mlir::Location loc, llvm::StringRef plan,
                      const SearchResult &result, size_t tables, size_t kept);

/// One for each number that the problem does not say.
void emitAssumptionRemarks(mlir::Location loc, llvm::StringRef plan,
                           const std::vector<Assumption> &assumptions);

/// Says that a complete plan was left alone.
void emitKeptRemark(mlir::Location loc, llvm::StringRef plan, size_t shards);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANNING_REMARKS_PLANREMARKS_H
