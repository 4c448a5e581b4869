//===- Bytecode.cpp - Fuzzes the reader of bytecode -----------------------===//

#include "Fuzz.h"
#include "MlirInput.h"
#include "TokenMutator.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace neuroshard::fuzz;

static bool holdsBytecode(std::string_view input) {
  return isBytecode(llvm::MemoryBufferRef(llvm::StringRef(input), "input"));
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view input = textOf(data, size);
  if (!holdsBytecode(input))
    return 0;
  if (OwningOpRef<ModuleOp> module = readModule(input, freshContext()))
    printModule(*module);
  return 0;
}

/// Changes the bytes of bytecode, and makes bytecode of FileCheck tests.
static size_t mutateBytecode(uint8_t *data, size_t size, size_t maxSize,
                             unsigned seed) {
  if (holdsBytecode(textOf(data, size)))
    return LLVMFuzzerMutate(data, size, maxSize);
  size = mutateTokens(data, size, maxSize, seed);
  if (OwningOpRef<ModuleOp> module =
          readModule(textOf(data, size), freshContext()))
    return replaceInput(writeBytecode(*module), data, size, maxSize);
  return size;
}

NEUROSHARD_FUZZ_MUTATOR(mutateBytecode)
