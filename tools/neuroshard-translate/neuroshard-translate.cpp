//===- neuroshard-translate.cpp - Between IR and JSON ---------------------===//

#include "Translations.h"
#include "WriteFailure.h"

#include "mlir/Support/LogicalResult.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/WithColor.h"

/// The value of -o, as `-o FILE` or `-o=FILE`; empty if there is none.
static llvm::StringRef findOutput(llvm::ArrayRef<const char *> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    llvm::StringRef argument = arguments[i];
    if (!argument.consume_front("-"))
      continue;
    argument.consume_front("-");
    if (argument == "o" && i + 1 < arguments.size())
      return arguments[i + 1];
    if (argument.consume_front("o="))
      return argument;
  }
  return {};
}

/// An argument or an option's value that names the file `output`.
static bool isAlsoInput(llvm::ArrayRef<const char *> arguments,
                        llvm::StringRef output) {
  return llvm::any_of(arguments, [&](llvm::StringRef argument) {
    if (argument.consume_front("-"))
      argument = argument.split('=').second;
    return argument.data() != output.data() &&
           llvm::sys::fs::equivalent(argument, output);
  });
}

int main(int argc, char **argv) {
  // MLIR's driver parses the command line, and empties the output before it
  // reads the input.
  llvm::ArrayRef<const char *> arguments(argv + 1, argv + argc);
  llvm::StringRef output = findOutput(arguments);
  if (!output.empty() && isAlsoInput(arguments, output)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-translate")
        << neuroshard::printable(output)
        << ": is an input, too; expected another file after -o\n";
    return EXIT_FAILURE;
  }
  neuroshard::registerTranslations();
  // The standard output is flushed after main().
  static neuroshard::WriteFailure failure("neuroshard-translate",
                                          output.empty() ? "-" : output.str());
  return mlir::failed(mlir::mlirTranslateMain(
      argc, argv, "NeuroShard workload and plan translation driver"));
}
