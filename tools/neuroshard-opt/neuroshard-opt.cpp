//===- neuroshard-opt.cpp - Run passes on a module ------------------------===//

#include "neuroshard/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "NeuroShard modular optimizer driver\n", registry));
}
