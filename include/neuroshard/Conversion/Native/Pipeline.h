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
  Option<int64_t> tileRows{
      *this, "tile-rows",
      llvm::cl::desc("Rows of a matrix product that registers hold"),
      llvm::cl::init(6)};
  Option<int64_t> tileColumns{
      *this, "tile-columns",
      llvm::cl::desc("Columns of a matrix product that registers hold"),
      llvm::cl::init(8)};
  Option<bool> fusedProducts{
      *this, "fused-products",
      llvm::cl::desc("Round each product and sum of a matrix product once"),
      llvm::cl::init(false)};
};

/// The tile of a matrix product's sums that the registers of a CPU hold.
struct RegisterTile {
  int64_t rows, columns;
  /// Whether the CPU has instructions that round a product and sum once.
  bool fused;
};

/// The tile for a CPU with these instruction sets, by LLVM's names.
RegisterTile registerTileOf(llvm::ArrayRef<std::string> instructionSets);

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
