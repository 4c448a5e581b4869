//===- Interfaces.h - Dialect interfaces -----------------------*- C++ -*-===//
//
// How the dialect takes part in inlining and printing.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_DIALECT_INTERFACES_H
#define NEUROSHARD_LIB_DIALECT_INTERFACES_H

#include "mlir/IR/OpImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

namespace neuroshard::ir {

/// Allows all inlining: no op depends on the function that it is in.
struct InlinerInterface : mlir::DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(mlir::Operation *, mlir::Region *, bool,
                       mlir::IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(mlir::Region *, mlir::Region *, bool,
                       mlir::IRMapping &) const final {
    return true;
  }
};

/// Types that name every feature are printed once, as an alias.
struct AsmInterface : mlir::OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(mlir::Type type, llvm::raw_ostream &os) const final;
};

} // namespace neuroshard::ir

#endif // NEUROSHARD_LIB_DIALECT_INTERFACES_H
