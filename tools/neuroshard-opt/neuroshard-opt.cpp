//===- neuroshard-opt.cpp - Run passes on a module ------------------------===//

#include "DialectVersion.h"
#include "WeightsFiles.h"
#include "WriteFailure.h"
#include "neuroshard/InitAll.h"
#include "neuroshard/Transforms/CostModelPluginOption.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/WithColor.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::registerAllPasses();
  neuroshard::addCostModelPluginOption();
  neuroshard::printOwnVersion("neuroshard-opt");
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "NeuroShard modular optimizer driver\n", registry);
  // MLIR empties the output before it reads the input.
  if (llvm::sys::fs::equivalent(input, output)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-opt")
        << neuroshard::printable(output)
        << ": is the input, too; expected another file after -o\n";
    return EXIT_FAILURE;
  }
  // The standard output is flushed after main().
  static neuroshard::WriteFailure failure("neuroshard-opt", output);
  neuroshard::WeightsFiles weights;
  weights.addTo(registry);
  if (failed(mlir::MlirOptMain(argc, argv, input, output, registry)))
    return EXIT_FAILURE;
  std::string error = weights.keep();
  if (error.empty())
    return EXIT_SUCCESS;
  llvm::WithColor::error(llvm::errs(), "neuroshard-opt")
      << "weights-file: " << neuroshard::printable(error) << "\n";
  return EXIT_FAILURE;
}
