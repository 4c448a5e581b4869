//===- Compiler.h - Compiles a model to an artifact -------------*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMPILE_COMPILER_H
#define NEUROSHARD_TOOLS_COMPILE_COMPILER_H

#include "Options.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"

namespace neuroshard {

/// Compiles `options.input` into the directory `options.output`, which
/// appears, or changes, only if everything went well. Errors are emitted;
/// `sources` gets the input's text, for them.
mlir::LogicalResult compile(const CompileOptions &options,
                            llvm::SourceMgr &sources,
                            mlir::MLIRContext &context);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMPILE_COMPILER_H
