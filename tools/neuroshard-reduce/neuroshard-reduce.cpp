//===- neuroshard-reduce.cpp - Make a failing module smaller --------------===//
//
// MLIR's reducer, with a pass that knows tables, shards and devices.
//
//===----------------------------------------------------------------------===//

#include "CommandTest.h"
#include "Reduction.h"

#include "neuroshard/InitAll.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/SourceMgr.h"

int main(int argc, char **argv) {
  neuroshard::CommandTest test;
  std::vector<std::string> arguments = test.parse(argc, argv);
  if (arguments.empty())
    return EXIT_FAILURE;
  std::vector<char *> words;
  for (std::string &argument : arguments)
    words.push_back(argument.data());
  words.push_back(nullptr);

  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::registerAllPasses();
  neuroshard::registerReduction();
  neuroshard::addReductionPatterns(registry);
  mlir::MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler printer(sources, &context);
  return mlir::failed(mlir::mlirReduceMain(static_cast<int>(arguments.size()),
                                           words.data(), context));
}
