//===- Pipeline.cpp - From standard dialects to LLVM's --------------------===//
//
// Bufferization, deallocation, loops for structured ops, then the LLVM dialect.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/Pipeline.h"

#include "neuroshard/Conversion/Native/Passes.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/BufferizationToMemRef/BufferizationToMemRef.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace neuroshard {

static void addBufferization(OpPassManager &pm) {
  pm.addPass(createProtectArguments());
  pm.addNestedPass<func::FuncOp>(createSeparateResults());
  pm.addPass(createConvertElementwiseToLinalgPass());
  pm.addNestedPass<func::FuncOp>(createDecomposeAggregates());
  pm.addNestedPass<func::FuncOp>(createLinalgGeneralizeNamedOpsPass());
  pm.addNestedPass<func::FuncOp>(createFuseElementwise());
  pm.addNestedPass<func::FuncOp>(createOrderReductions());

  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  bufferization::buildBufferDeallocationPipeline(pm);
  pm.addPass(createConvertBufferizationToMemRefPass());
}

RegisterTile registerTileOf(llvm::ArrayRef<std::string> instructionSets) {
  auto has = [&](llvm::StringRef set) {
    return llvm::is_contained(instructionSets, set);
  };
  bool fused = has("fma");
  // 32 registers of 16 numbers, 16 of 8, 16 of 4: all but four for sums.
  if (has("avx512f"))
    return {12, 32, fused};
  return {6, has("avx") ? 16 : 8, fused};
}

static void addLoops(OpPassManager &pm, const NativePipelineOptions &options) {
  pm.addNestedPass<func::FuncOp>(createLowerStridedCopies());
  TileContractionsOptions tile;
  tile.rows = options.tileRows;
  tile.columns = options.tileColumns;
  tile.fused = options.fusedProducts;
  pm.addNestedPass<func::FuncOp>(createTileContractions(tile));
  pm.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  VectorTransferToSCFOptions unroll;
  pm.addPass(createConvertVectorToSCFPass(unroll.enableFullUnroll()));
  pm.addPass(memref::createExpandOpsPass());
  pm.addPass(memref::createExpandStridedMetadataPass());
  pm.addPass(createLowerAffinePass());
  // Also rounds f32 to bf16 by integer arithmetic: hardware instructions for
  // it flush denormals.
  arith::ArithExpandOpsPassOptions expand;
  expand.includeBf16 = true;
  pm.addPass(arith::createArithExpandOpsPass(expand));
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

static void addConversionToLLVM(OpPassManager &pm) {
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createConvertMathToLibmPass());
  // The runtime's memory (HostProgramABI.h): it reuses that of results.
  FinalizeMemRefToLLVMConversionPassOptions memory;
  memory.useAlignedAlloc = true;
  memory.useGenericFunctions = true;
  pm.addPass(createFinalizeMemRefToLLVMConversionPass(memory));
  pm.addPass(createConvertIndexToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createCanonicalizerPass());
}

void buildNativePipeline(OpPassManager &pm,
                         const NativePipelineOptions &options) {
  if (options.buffers)
    addBufferization(pm);
  if (options.invokeWrappers)
    pm.addPass(createInvokeWrappers());
  addLoops(pm, options);
  addConversionToLLVM(pm);
}

void registerNativePipeline() {
  PassPipelineRegistration<NativePipelineOptions>(
      "neuroshard-native-pipeline",
      "Lower kernels and host functions to the LLVM dialect for the CPU",
      [](OpPassManager &pm, const NativePipelineOptions &options) {
        buildNativePipeline(pm, options);
      });
}

void registerNativeDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

} // namespace neuroshard
