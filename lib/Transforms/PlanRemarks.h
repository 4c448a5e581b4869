//===- PlanRemarks.h - What a search decided, and why -----------*- C++ -*-===//

#ifndef NEUROSHARD_LIB_TRANSFORMS_PLANREMARKS_H
#define NEUROSHARD_LIB_TRANSFORMS_PLANREMARKS_H

#include "neuroshard/Planner/Search.h"

#include "mlir/IR/Location.h"

namespace neuroshard {

/// Emits the result of a search as remarks of the category "neuroshard-plan":
/// decisions as passed, costs and what was tried as analysis.
void emitPlanRemarks(mlir::Location loc, llvm::StringRef plan,
                     const SearchResult &result);

/// Says that a complete plan was left alone.
void emitKeptRemark(mlir::Location loc, llvm::StringRef plan, size_t shards);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_TRANSFORMS_PLANREMARKS_H
