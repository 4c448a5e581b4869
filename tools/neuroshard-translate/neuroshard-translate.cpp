//===- neuroshard-translate.cpp - Between IR and JSON ---------------------===//

#include "DialectVersion.h"
#include "OutputArgument.h"
#include "Translations.h"
#include "WriteFailure.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/Support/WithColor.h"

int main(int argc, char **argv) {
  // MLIR's driver parses the command line, and empties the output before it
  // reads the input.
  llvm::ArrayRef<const char *> arguments(argv + 1, argv + argc);
  llvm::StringRef output = neuroshard::findOutput(arguments);
  if (!output.empty() && neuroshard::isAlsoInput(arguments, output)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-translate")
        << neuroshard::printable(output)
        << ": is an input, too; expected another file after -o\n";
    return EXIT_FAILURE;
  }
  neuroshard::registerTranslations();
  neuroshard::printOwnVersion("neuroshard-translate");
  // The standard output is flushed after main().
  static neuroshard::WriteFailure failure("neuroshard-translate",
                                          output.empty() ? "-" : output.str());
  return mlir::failed(mlir::mlirTranslateMain(
      argc, argv, "NeuroShard workload and plan translation driver"));
}
