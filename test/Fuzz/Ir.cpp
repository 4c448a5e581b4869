//===- Ir.cpp - Fuzzes the parser, verifiers and printers of the dialect --===//

#include "Fuzz.h"
#include "MlirInput.h"
#include "TokenMutator.h"

using namespace mlir;
using namespace neuroshard::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext &context = freshContext();
  OwningOpRef<ModuleOp> module = readModule(textOf(data, size), context);
  if (!module)
    return 0;
  std::string text = printModule(*module);
  OwningOpRef<ModuleOp> again = readModule(text, context);
  require(again && printModule(*again) == text,
          "a module that is printed is read as the same");
  again = readModule(writeBytecode(*module), context);
  require(again && printModule(*again) == text,
          "a module that is written as bytecode is read as the same");
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateTokens)
