//===- laptop-opt.cpp - neuroshard-opt with a pass of one's own -----------===//

#include "Passes.h"
#include "neuroshard/InitAll.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  neuroshard::registerAllDialects(registry);
  neuroshard::registerAllPasses();
  laptop::registerLaptopPasses();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "NeuroShard on a laptop\n", registry));
}
