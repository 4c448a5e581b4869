//===- neuroshard-dialect-opt.cpp - The dialect without our passes --------===//
//
// For the tests of the dialect itself: linked from the dialect alone, so that
// a change of an op reaches its test without a build of all passes.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<neuroshard::ir::NeuroShardDialect, mlir::arith::ArithDialect,
                  mlir::func::FuncDialect, mlir::tensor::TensorDialect>();
  mlir::func::registerInlinerExtension(registry);
  mlir::registerTransformsPasses();
  mlir::memref::registerMemRefPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "NeuroShard optimizer driver for the dialect\n", registry));
}
