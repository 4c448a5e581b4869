//===- GpuPipelines.cpp - The order of the passes on GPU modules ----------===//

#include "neuroshard/Conversion/GPU/GpuPipelines.h"

#include "neuroshard/Conversion/GPU/Passes.h"

#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace neuroshard {

void buildGpuSimplification(OpPassManager &pm) {
  OpPassManager &gpuPm = pm.nest<gpu::GPUModuleOp>();
  gpuPm.addPass(createDistributeOverLanes());
  gpuPm.addPass(createLowerDeviceArrays());
  gpuPm.addPass(createInlinerPass());
  gpuPm.addPass(createSymbolDCEPass());
  gpuPm.addPass(createCanonicalizerPass());
  gpuPm.addPass(createCSEPass());
  gpuPm.addPass(createLoopInvariantCodeMotionPass());
}

void buildGpuToNVVM(OpPassManager &pm) {
  OpPassManager &gpuPm = pm.nest<gpu::GPUModuleOp>();
  gpuPm.addPass(createExactMath());
  gpuPm.addPass(createSCFToControlFlowPass());
  gpuPm.addPass(createConvertGpuOpsToNVVMOps());
  gpuPm.addPass(createReconcileUnrealizedCastsPass());
  gpuPm.addPass(createCanonicalizerPass());
  gpuPm.addPass(createCSEPass());
}

void registerGpuPipelines() {
  PassPipelineRegistration<>(
      "neuroshard-gpu-simplify",
      "Distribute the bodies of GPU modules over lanes, inline them into their "
      "kernels and simplify them",
      buildGpuSimplification);
  PassPipelineRegistration<>("neuroshard-gpu-to-nvvm",
                             "Lower simplified GPU modules to the NVVM dialect",
                             buildGpuToNVVM);
}

} // namespace neuroshard
