//===- Edits.h - Ways to make a failing module smaller ---------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REDUCE_EDITS_H
#define NEUROSHARD_TOOLS_REDUCE_EDITS_H

#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/ArrayRef.h"

namespace neuroshard {

/// One way to make a module smaller, anchored on an op.
struct ModuleEdit {
  llvm::StringRef name;
  /// Changes the module around `op` and returns true, or returns false and
  /// changes nothing. Erases no op beside `op`, since MLIR's reduction tree
  /// holds pointers to these; but ops inside of them. The module may be invalid
  /// afterwards, or may no longer fail: test it.
  bool (*apply)(mlir::Operation *op, mlir::RewriterBase &rewriter);
  /// Whether it may be applied to its own result, as halving.
  bool repeats = false;
};

/// Those that drop most first.
llvm::ArrayRef<ModuleEdit> allEdits();

// Of tables, in TableEdits.cpp.

/// The table with its lookups, shards, pins and constraints; lookups become
/// zeros.
bool dropTable(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// Its shards become one, on one device.
bool joinShards(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// Rows to 8, or to a half; row shards keep their shares.
bool makeFewRows(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool halveRows(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// The same of columns, to a multiple of 4, if only functions return the
/// results of its lookups.
bool makeFewColumns(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool halveColumns(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool dropOptimizer(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool dropAccess(mlir::Operation *op, mlir::RewriterBase &rewriter);

// Of functions, in FunctionEdits.cpp.

/// A lookup, or another op, becomes zeros, or nothing where it is not used.
bool dropLookup(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool dropOtherOp(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool dropStatistics(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// Results that no lookup gives.
bool dropResults(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// Arguments that are not used, and features that no op reads.
bool dropFeatures(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// The same of a pack.
bool dropPackedFeatures(mlir::Operation *op, mlir::RewriterBase &rewriter);

// Of plans and what is left, in PlanEdits.cpp.

/// A function, plan or topology that nothing names.
bool dropSymbol(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// A shard or a pin.
bool dropShard(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// The copies of a shard but for the first.
bool dropCopies(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool dropProvenance(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// One level of equal devices, one or half as many; shards and pins wrap
/// around.
bool makeOneDevice(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool halveDevices(mlir::Operation *op, mlir::RewriterBase &rewriter);
/// Of a module: `neuroshard.planning` as a whole; the batch to 8, or half.
bool dropPlanning(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool makeSmallBatch(mlir::Operation *op, mlir::RewriterBase &rewriter);
bool halveBatch(mlir::Operation *op, mlir::RewriterBase &rewriter);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REDUCE_EDITS_H
