//===- neuroshard-reduce.cpp - Make a failing module smaller --------------===//
//
// MLIR's reducer, with a pass that knows tables, shards and devices.
//
//===----------------------------------------------------------------------===//

#include "CommandTest.h"
#include "DialectVersion.h"
#include "OutputArgument.h"
#include "Reduction.h"
#include "WriteFailure.h"

#include "neuroshard/InitAll.h"
#include "neuroshard/Support/Printable.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

#include <system_error>

/// Why a file cannot be written, which MLIR's reducer does not tell; leaves the
/// file as it was.
static std::error_code whyNotWritten(llvm::StringRef path) {
  bool isThere = llvm::sys::fs::exists(path);
  if (path.empty() || (isThere && !llvm::sys::fs::is_regular_file(path) &&
                       !llvm::sys::fs::is_directory(path)))
    return {};
  std::error_code error;
  {
    llvm::raw_fd_ostream file(path, error, llvm::sys::fs::OF_Append);
  }
  if (!isThere && !error)
    llvm::sys::fs::remove(path);
  return error;
}

int main(int argc, char **argv) {
  neuroshard::CommandTest test;
  std::vector<std::string> arguments = test.parse(argc, argv);
  if (arguments.empty())
    return EXIT_FAILURE;
  std::vector<char *> words;
  for (std::string &argument : arguments)
    words.push_back(argument.data());
  llvm::ArrayRef<const char *> given = llvm::ArrayRef(words).drop_front();
  llvm::StringRef output = neuroshard::findOutput(given);
  if (!output.empty() && neuroshard::isAlsoInput(given, output)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-reduce")
        << neuroshard::printable(output)
        << ": is the input, too; expected another file after -o\n";
    return EXIT_FAILURE;
  }
  llvm::StringRef folder = llvm::sys::path::parent_path(output);
  if (!folder.empty() && !llvm::sys::fs::is_directory(folder)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-reduce")
        << neuroshard::printable(output) << ": there is no folder "
        << neuroshard::printable(folder) << "\n";
    return EXIT_FAILURE;
  }
  if (std::error_code error = whyNotWritten(output)) {
    llvm::WithColor::error(llvm::errs(), "neuroshard-reduce")
        << neuroshard::printable(output)
        << ": cannot write: " << error.message() << "\n";
    return EXIT_FAILURE;
  }
  // The standard output is flushed after main().
  static neuroshard::WriteFailure failure("neuroshard-reduce",
                                          output.empty() ? "-" : output.str());
  words.push_back(nullptr);

  neuroshard::printOwnVersion("neuroshard-reduce");
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
