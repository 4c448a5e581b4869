//===- CompileEmulated.cpp - From a GPU module to a CPU library -----------===//
//
// Runs the emulation pass and then the native pipeline on the GPU module.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Emulation/Emulation.h"
#include "neuroshard/Conversion/Emulation/Passes.h"
#include "neuroshard/Conversion/RunPasses.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

using namespace mlir;

namespace neuroshard {

LogicalResult compileEmulated(ModuleOp module, const NativeOptions &options,
                              StringRef path) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  for (auto gpuModule : module.getOps<gpu::GPUModuleOp>())
    builder.clone(*gpuModule);
  if (failed(runPasses(*alone, options.crashReproducer, [](OpPassManager &pm) {
        pm.addPass(createEmulateGpu());
      })))
    return failure();
  return compileToSharedLibrary(*alone, options, path);
}

} // namespace neuroshard
