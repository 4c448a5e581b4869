//===- Pipeline.h - From standard dialects to LLVM's -----------*- C++ -*-===//
//
// The passes of native code for the CPU, for kernels, host functions and the
// reference program.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_PIPELINE_H
#define NEUROSHARD_CONVERSION_NATIVE_PIPELINE_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace neuroshard {

struct NativePipelineOptions
    : public mlir::PassPipelineOptions<NativePipelineOptions> {
  Option<bool> buffers{
      *this, "buffers",
      llvm::cl::desc(
          "Turn tensors into buffers and free them; not needed for a "
          "module that has neither"),
      llvm::cl::init(true)};
  Option<bool> invokeWrappers{
      *this, "invoke-wrappers",
      llvm::cl::desc("Add nsrt_invoke_<f> for every public function <f>."),
      llvm::cl::init(true)};
};

/// Argument attribute of a host function: the pointer in the argument array
/// is the value itself (the runtime's device), not the address of it.
inline constexpr llvm::StringLiteral kDeviceArgumentAttr = "nsrt.device";

/// Adds the passes that take a module of func, tensor, linalg, arith, math,
/// scf, cf, vector, memref and bufferization ops to the LLVM dialect.
/// Functions marked llvm.bareptr take bare pointers, all others strided
/// memref descriptors. What was a tensor is contiguous from `aligned` on (the
/// descriptor's offset is 0); a memref that a function returns is its
/// caller's to free.
void buildNativePipeline(mlir::OpPassManager &pm,
                         const NativePipelineOptions &options = {});

/// Registers the pipeline as `neuroshard-native-pipeline`.
void registerNativePipeline();

/// Registers what the pipeline and the translation to LLVM IR need: dialects
/// and implementations of their interfaces.
void registerNativeDialects(mlir::DialectRegistry &registry);

} // namespace neuroshard

#endif // NEUROSHARD_CONVERSION_NATIVE_PIPELINE_H
