//===- OutputArgument.h - Where a driver of MLIR writes --------*- C++ -*-===//
//
// MLIR's drivers parse the command line, and empty the output before they read
// the input.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_OUTPUTARGUMENT_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_OUTPUTARGUMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"

namespace neuroshard {

/// The value of -o, as `-o FILE` or `-o=FILE`; empty if there is none.
inline llvm::StringRef findOutput(llvm::ArrayRef<const char *> arguments) {
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
inline bool isAlsoInput(llvm::ArrayRef<const char *> arguments,
                        llvm::StringRef output) {
  return llvm::any_of(arguments, [&](llvm::StringRef argument) {
    if (argument.consume_front("-"))
      argument = argument.split('=').second;
    return argument.data() != output.data() &&
           llvm::sys::fs::equivalent(argument, output);
  });
}

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_OUTPUTARGUMENT_H
