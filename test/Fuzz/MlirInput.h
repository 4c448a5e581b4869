//===- MlirInput.h - Inputs of fuzz targets as IR ---------------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_FUZZ_MLIRINPUT_H
#define NEUROSHARD_TEST_FUZZ_MLIRINPUT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string_view>

namespace neuroshard::fuzz {

/// A context with all dialects, passes and pipelines registered. Types and
/// attributes stay in it, so that a new one is made now and then.
mlir::MLIRContext &freshContext();

/// Counts errors while it lives and keeps them, and all else, from the output.
class ErrorCount {
public:
  explicit ErrorCount(mlir::MLIRContext &context);
  int count() const { return errors; }

private:
  int errors = 0;
  mlir::ScopedDiagnosticHandler handler;
};

/// Reads text or bytecode as a verified module; null with an error if that
/// fails.
mlir::OwningOpRef<mlir::ModuleOp> readModule(std::string_view input,
                                             mlir::MLIRContext &context);

/// The module as text.
std::string printModule(mlir::ModuleOp module);
/// The module as bytecode.
std::string writeBytecode(mlir::ModuleOp module);

} // namespace neuroshard::fuzz

#endif // NEUROSHARD_TEST_FUZZ_MLIRINPUT_H
