//===- WriteOutput.cpp - Writes one file of a compilation -----------------===//

#include "neuroshard/Conversion/Native/WriteOutput.h"

#include "neuroshard/Support/Printable.h"

#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace neuroshard {

InFlightDiagnostic failToWrite(Location loc, StringRef path,
                               std::error_code error) {
  return emitError(loc) << "cannot write '" << printable(path)
                        << "': " << error.message();
}

LogicalResult writeOutput(
    Location loc, StringRef path, llvm::sys::fs::OpenFlags flags,
    llvm::function_ref<LogicalResult(llvm::raw_pwrite_stream &)> write) {
  std::error_code error;
  llvm::ToolOutputFile file(path, error, flags);
  LogicalResult written = failure();
  if (!error) {
    written = write(file.os());
    file.os().flush();
    error = file.os().error();
    file.os().clear_error();
  }
  if (error)
    return failToWrite(loc, path, error);
  if (succeeded(written))
    file.keep();
  return written;
}

} // namespace neuroshard
