//===- WriteFailure.h - Errors of outputs that LLVM writes ------*- C++ -*-===//
///
/// \file
/// LLVM's tools end with "IO failure on output stream" on a full disk, without
/// the name of the file. For tools that write through LLVM.
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_WRITEFAILURE_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_WRITEFAILURE_H

#include "neuroshard/Support/Printable.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/WithColor.h"

#include <string>
#include <utility>

namespace neuroshard {

/// While it lives, fatal errors of LLVM are one line that names the tool, and
/// the output if that cannot be written. LLVM removes what it has written in
/// part.
class WriteFailure {
public:
  WriteFailure(std::string tool, std::string output)
      : tool(std::move(tool)), output(std::move(output)) {
    llvm::install_fatal_error_handler(report, this);
  }
  WriteFailure(const WriteFailure &) = delete;
  WriteFailure &operator=(const WriteFailure &) = delete;
  ~WriteFailure() { llvm::remove_fatal_error_handler(); }

private:
  static void report(void *data, const char *reason, bool /*isCrash*/) {
    const auto &self = *static_cast<const WriteFailure *>(data);
    llvm::raw_ostream &error = llvm::WithColor::error(llvm::errs(), self.tool);
    if (llvm::StringRef(reason).starts_with("IO failure"))
      error << (self.output == "-" ? "standard output" : printable(self.output))
            << ": ";
    error << printableLines(reason) << "\n";
  }

  std::string tool, output;
};

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_WRITEFAILURE_H
