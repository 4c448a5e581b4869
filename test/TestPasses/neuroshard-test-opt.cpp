//===- neuroshard-test-opt.cpp - neuroshard-opt with the passes of tests --===//

#include "Passes.h"

#include "neuroshard/InitAll.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::registerAllPasses();
  neuroshard::registerNeuroShardTestPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "NeuroShard optimizer driver for tests\n", registry));
}
