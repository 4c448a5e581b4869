//===- neuroshard-lsp-server.cpp - MLIR's language server with prices -----===//

#include "EditorPrices.h"

#include "neuroshard/InitAll.h"

#include "mlir/Support/LLVM.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::addEditorPrices(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
