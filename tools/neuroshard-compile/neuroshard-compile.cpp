//===- neuroshard-compile.cpp - Compiles a model to an artifact -----------===//
//
// Logical IR in, a directory out: per-device programs, manifest and plan.
//
//===----------------------------------------------------------------------===//

#include "Compiler.h"
#include "EndingSignals.h"
#include "Options.h"

#include "neuroshard/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/SourceMgr.h"

int main(int argc, char **argv) {
  neuroshard::watchEndingSignals();
  neuroshard::CompileOptions options;
  if (std::optional<int> exitCode =
          neuroshard::parseOptions(argc, argv, options))
    return *exitCode;

  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler printer(sources, &context);
  return mlir::succeeded(neuroshard::compile(options, sources, context)) ? 0
                                                                         : 1;
}
