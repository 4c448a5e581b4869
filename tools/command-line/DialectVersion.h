//===- DialectVersion.h - --version of tools with the dialect ---*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_COMMAND_LINE_DIALECTVERSION_H
#define NEUROSHARD_TOOLS_COMMAND_LINE_DIALECTVERSION_H

#include "Version.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"

namespace neuroshard {

/// "dialect bytecode N, LLVM 22.1.0".
inline std::string dialectVersion() {
  return "dialect bytecode " +
         std::to_string(ir::NeuroShardDialect::kBytecodeVersion) + ", LLVM " +
         LLVM_VERSION_STRING;
}

/// For tools whose command line LLVM reads.
inline void printOwnVersion(const std::string &tool) {
  llvm::cl::SetVersionPrinter([tool](llvm::raw_ostream &os) {
    os << tool << " " << projectVersion() << " (" << dialectVersion() << ")\n";
  });
}

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_COMMAND_LINE_DIALECTVERSION_H
