//===- Zeros.h - Zeros in place of results ---------------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_REDUCE_ZEROS_H
#define NEUROSHARD_TOOLS_REDUCE_ZEROS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace neuroshard {

/// Whether there are zeros of a type: of scalars, and of tensors of which no
/// dimension but the first is dynamic.
bool hasZeros(mlir::Type type);

/// Replaces the results of an op, for which there are zeros, and erases it. A
/// dynamic dimension is the batch: that of the op's first jagged operand, else
/// of the function's first jagged argument, else 1.
void replaceByZeros(mlir::Operation *op, mlir::RewriterBase &rewriter);

/// Whether an op is part of what replaceByZeros() makes.
bool isZeros(mlir::Operation *op);

/// Whether no op of the module names a symbol.
bool isUnnamed(mlir::SymbolOpInterface symbol);

/// Makes a function's type that of its arguments and of what it returns.
void updateType(mlir::func::FuncOp function, mlir::RewriterBase &rewriter);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_REDUCE_ZEROS_H
