//===- Lowering.h - Lowers a module level by level --------------*- C++ -*-===//
//
// The steps of the compiler from reading a module to code generation.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_COMPILE_LOWERING_H
#define NEUROSHARD_TOOLS_COMPILE_LOWERING_H

#include "Options.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/SourceMgr.h"

namespace neuroshard {

/// Reads and verifies the input.
mlir::OwningOpRef<mlir::ModuleOp> readModule(llvm::StringRef path,
                                             llvm::SourceMgr &sources,
                                             mlir::MLIRContext &context);

/// True if the module is at level 4 already.
bool isPartitioned(mlir::ModuleOp module);

/// Adds the plan of the file, or plans.
mlir::LogicalResult plan(mlir::ModuleOp module, const CompileOptions &options);

/// The plan of a planned module as JSON.
mlir::FailureOr<std::string> getPlanJson(mlir::ModuleOp module,
                                         llvm::StringRef name);

/// Planned to sharded, sharded to partitioned.
mlir::LogicalResult shard(mlir::ModuleOp module, const CompileOptions &options);
mlir::LogicalResult partition(mlir::ModuleOp module,
                              const CompileOptions &options);

/// The pipeline neuroshard-reference in two halves: to step functions, from
/// which the manifest takes the meaning of arguments, and to the reference
/// program.
mlir::LogicalResult outline(mlir::ModuleOp module,
                            const CompileOptions &options);
mlir::LogicalResult lowerReference(mlir::ModuleOp module,
                                   const CompileOptions &options);

/// Partitioned to the device program of this name.
mlir::LogicalResult convertToRuntime(mlir::ModuleOp module,
                                     llvm::StringRef program,
                                     const CompileOptions &options);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_LOWERING_H
