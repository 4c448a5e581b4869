//===- InitAll.cpp - Everything a NeuroShard tool registers ---------------===//

#include "neuroshard/InitAll.h"

#include "neuroshard/Conversion/Emulation/Passes.h"
#include "neuroshard/Conversion/GPU/GpuPipelines.h"
#include "neuroshard/Conversion/GPU/Passes.h"
#include "neuroshard/Conversion/Native/Passes.h"
#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Conversion/Passes.h"
#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Pipelines/Pipelines.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlanPasses.h"

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

void neuroshard::registerAllPasses() {
  mlir::registerAllPasses();
  registerOwnPasses();
}

void neuroshard::registerOwnPasses() {
  registerNeuroShardConversionPasses();
  registerNeuroShardEmulationPasses();
  registerNeuroShardGPUPasses();
  registerGpuPipelines();
  registerNeuroShardNativePasses();
  registerNativePipeline();
  registerNeuroShardPlanPasses();
  registerNeuroShardTransformsPasses();
  registerPipelines();
}
