//===- InitAll.cpp - Everything a NeuroShard tool registers ---------------===//

#include "neuroshard/InitAll.h"

#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"

void neuroshard::registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<ir::NeuroShardDialect>();
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
}

void neuroshard::registerAllPasses() { mlir::registerAllPasses(); }
