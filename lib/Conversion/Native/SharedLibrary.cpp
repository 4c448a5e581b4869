//===- SharedLibrary.cpp - From a module to a shared library --------------===//
//
// Lowering, code generation and linking, with their intermediate files.
//
//===----------------------------------------------------------------------===//

#include "neuroshard/Conversion/Native/SharedLibrary.h"

#include "CheckLowered.h"
#include "Linker.h"
#include "ObjectCode.h"

#include "neuroshard/Conversion/Native/NativeTarget.h"
#include "neuroshard/Conversion/Native/Pipeline.h"
#include "neuroshard/Conversion/Native/WriteOutput.h"
#include "neuroshard/Conversion/RunPasses.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/FileUtilities.h"

using namespace mlir;

namespace neuroshard {

/// Whether to run bufferization and deallocation. Kernels on pointers do not
/// need them and have ops that these passes refuse.
static bool hasBuffers(ModuleOp module) {
  auto isBuffer = [](Type type) {
    return isa<BaseMemRefType, TensorType>(type);
  };
  return module
      ->walk([&](Operation *op) {
        return llvm::any_of(op->getOperandTypes(), isBuffer) ||
                       llvm::any_of(op->getResultTypes(), isBuffer)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static LogicalResult lower(ModuleOp module, const NativeOptions &native) {
  MLIRContext *context = module.getContext();
  DialectRegistry registry;
  registerNativeDialects(registry);
  context->appendDialectRegistry(registry);
  NativePipelineOptions options;
  options.buffers = hasBuffers(module);
  FailureOr<NativeTarget> target = findNativeTarget(module.getLoc(), native);
  if (failed(target))
    return failure();
  RegisterTile tile = registerTileOf(target->instructionSets);
  options.tileRows = tile.rows;
  options.tileColumns = tile.columns;
  options.fusedProducts = tile.fused;
  if (failed(runPasses(module, native.crashReproducer, [&](OpPassManager &pm) {
        buildNativePipeline(pm, options);
      })))
    return failure();
  return checkLowered(module);
}

LogicalResult compileToSharedLibrary(ModuleOp module,
                                     const NativeOptions &options,
                                     StringRef path) {
  if (options.optLevel < 0 || options.optLevel > 3)
    return emitError(module.getLoc())
           << "optimisation level must be 0 to 3, got: " << options.optLevel;
  if (failed(lower(module, options)))
    return failure();

  std::string irPath;
  if (options.keepIntermediates) {
    irPath = (path + ".ll").str();
    if (failed(writeOutput(module.getLoc(), (path + ".mlir").str(),
                           llvm::sys::fs::OF_Text,
                           [&](llvm::raw_pwrite_stream &file) {
                             module.print(file);
                             return success();
                           })))
      return failure();
  }
  std::string objectPath = (path + ".o").str();
  llvm::FileRemover removeObject;
  if (!options.keepIntermediates)
    removeObject.setFile(objectPath);
  if (failed(writeObjectFile(module, options, objectPath, irPath)))
    return failure();
  return linkSharedLibrary(module, options, objectPath, path);
}

} // namespace neuroshard
