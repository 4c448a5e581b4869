//===- Bytecode.cpp - Fuzzes the verifiers behind bytecode ----------------===//
///
/// \file
/// MLIR's reader of bytecode is not made for damaged files (that of LLVM 22.1.8
/// hangs on some), so an input is a text: it is read without the verifiers,
/// written as bytecode, and that is read with them.
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "MlirInput.h"
#include "TokenMutator.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace neuroshard::fuzz;

static OwningOpRef<ModuleOp> readUnverified(std::string_view input,
                                            MLIRContext &context) {
  ErrorCount errors(context);
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  return parseSourceString<ModuleOp>(llvm::StringRef(input), config);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MLIRContext &context = freshContext();
  OwningOpRef<ModuleOp> module = readUnverified(textOf(data, size), context);
  if (module)
    readModule(writeBytecode(*module), context);
  return 0;
}

NEUROSHARD_FUZZ_MUTATOR(mutateTokens)
