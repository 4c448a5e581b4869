//===- WriteOutput.cpp - Writes one file of a compilation -----------------===//

#include "WriteOutput.h"

#include "neuroshard/Support/Printable.h"

#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

namespace neuroshard {

LogicalResult writeOutput(
    ModuleOp module, StringRef path, llvm::sys::fs::OpenFlags flags,
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
    return module.emitError()
           << "cannot write '" << printable(path) << "': " << error.message();
  if (succeeded(written))
    file.keep();
  return written;
}

} // namespace neuroshard
