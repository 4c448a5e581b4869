//===- MlirInput.cpp - Inputs of fuzz targets as IR -----------------------===//

#include "MlirInput.h"

#include "Fuzz.h"
#include "neuroshard/InitAll.h"

#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace neuroshard::fuzz;

/// Inputs that share a context.
static constexpr int kInputsPerContext = 256;

static const DialectRegistry &allDialects() {
  static const DialectRegistry *registry = [] {
    auto *all = new DialectRegistry;
    neuroshard::registerAllDialects(*all);
    neuroshard::registerAllPasses();
    return all;
  }();
  return *registry;
}

MLIRContext &neuroshard::fuzz::freshContext() {
  static std::unique_ptr<MLIRContext> context;
  static int inputs = 0;
  if (inputs++ % kInputsPerContext == 0)
    context = std::make_unique<MLIRContext>(allDialects(),
                                            MLIRContext::Threading::DISABLED);
  return *context;
}

ErrorCount::ErrorCount(MLIRContext &context)
    : handler(&context, [this](Diagnostic &diagnostic) {
        errors += diagnostic.getSeverity() == DiagnosticSeverity::Error;
        return success();
      }) {}

OwningOpRef<ModuleOp> neuroshard::fuzz::readModule(std::string_view input,
                                                   MLIRContext &context) {
  ErrorCount errors(context);
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(llvm::StringRef(input), &context);
  require(module || errors.count() > 0, "IR that is refused has an error");
  return module;
}

std::string neuroshard::fuzz::printModule(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

std::string neuroshard::fuzz::writeBytecode(ModuleOp module) {
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  require(succeeded(writeBytecodeToFile(module, stream)),
          "a module is written as bytecode");
  return bytes;
}
