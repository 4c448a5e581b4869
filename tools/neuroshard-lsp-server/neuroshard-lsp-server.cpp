//===- neuroshard-lsp-server.cpp - MLIR's language server with prices -----===//

#include "DialectVersion.h"
#include "EditorPrices.h"
#include "ServerProcess.h"

#include "neuroshard/InitAll.h"

#include "mlir/Support/LLVM.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

#include <algorithm>
#include <string_view>

/// Whether all messages are those of the protocol: not of a test, and no help.
static bool speaksProtocol(int argc, char **argv) {
  return std::all_of(argv + 1, argv + argc, [](std::string_view argument) {
    argument.remove_prefix(
        std::min(argument.find_first_not_of('-'), argument.size()));
    return argument.starts_with("log") || argument.starts_with("pretty");
  });
}

int main(int argc, char **argv) {
  bool inHovers = speaksProtocol(argc, argv);
  neuroshard::printOwnVersion("neuroshard-lsp-server");
  auto serve = [&]() -> int {
    mlir::DialectRegistry registry;
    neuroshard::registerAllDialects(registry);
    neuroshard::addEditorPrices(registry, inHovers);
    return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
  };
  neuroshard::HoverPrices prices;
  return inHovers ? neuroshard::runBehind(prices, serve) : serve();
}
