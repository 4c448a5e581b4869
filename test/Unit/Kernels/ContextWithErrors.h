//===- ContextWithErrors.h - A context that keeps errors -------*- C++ -*-===//

#ifndef NEUROSHARD_TEST_KERNELS_CONTEXTWITHERRORS_H
#define NEUROSHARD_TEST_KERNELS_CONTEXTWITHERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>
#include <vector>

namespace neuroshard {

/// A context, and the errors reported in it.
struct ContextWithErrors {
  explicit ContextWithErrors(
      void (*registerDialects)(mlir::DialectRegistry &registry))
      : context(registryOf(registerDialects)),
        handler(&context, [this](mlir::Diagnostic &diagnostic) {
          errors.push_back(diagnostic.str());
          return mlir::success();
        }) {}

  std::vector<std::string> errors;
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;

private:
  static mlir::DialectRegistry
  registryOf(void (*registerDialects)(mlir::DialectRegistry &registry)) {
    mlir::DialectRegistry registry;
    registerDialects(registry);
    return registry;
  }
};

} // namespace neuroshard

#endif // NEUROSHARD_TEST_KERNELS_CONTEXTWITHERRORS_H
