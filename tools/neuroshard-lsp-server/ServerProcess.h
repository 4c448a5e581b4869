//===- ServerProcess.h - A server behind a filter of messages --*- C++ -*-===//

#ifndef NEUROSHARD_TOOLS_LSP_SERVER_SERVERPROCESS_H
#define NEUROSHARD_TOOLS_LSP_SERVER_SERVERPROCESS_H

#include "HoverPrices.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace neuroshard {

/// Runs `server`, which speaks the language server protocol on standard input
/// and output, in a process of its own, and reads what it and the client of
/// this process send each other. Gives the exit code of `server`; 1 if a signal
/// has ended it. Call before there are threads.
int runBehind(HoverPrices &prices, llvm::function_ref<int()> server);

} // namespace neuroshard

#endif // NEUROSHARD_TOOLS_LSP_SERVER_SERVERPROCESS_H
