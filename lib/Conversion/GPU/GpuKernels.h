//===- GpuKernels.h - The kernels of a GPU module --------------*- C++ -*-===//
//
// The functions that RuntimeCuda/GpuKernelABI.h names. A kernel finds its work
// and calls the variant for it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_GPUKERNELS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_GPUKERNELS_H

#include "DeviceStruct.h"
#include "Variants.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace neuroshard {

/// A kernel's arguments and where in the grid a thread is.
class KernelBuilder {
public:
  /// Begins a kernel at the end of the module; finish() ends it. The blocks
  /// are those of setLaunchBounds.
  KernelBuilder(mlir::gpu::GPUModuleOp module, llvm::StringRef name,
                llvm::ArrayRef<mlir::Type> arguments, int32_t residentBlocks);
  void finish();

  mlir::ImplicitLocOpBuilder b;
  mlir::Value argument(unsigned i) { return function.getArgument(i); }
  mlir::Value block, thread;
  mlir::Value constant(int64_t value);

private:
  mlir::gpu::GPUFuncOp function;
};

/// Makes a function a kernel of NSG_THREADS threads per block, and bounds its
/// registers so that `residentBlocks` blocks fit a multiprocessor. Without it
/// the assembler would allow fewer.
void setLaunchBounds(mlir::gpu::GPUFuncOp kernel, int32_t residentBlocks);

/// Blocks per multiprocessor of kernels on ids, which need few registers.
inline constexpr int32_t kIdResidentBlocks = 4;
/// Of the kernel of rows with scales, which needs 70.
inline constexpr int32_t kScaledResidentBlocks = 3;

/// A lookup or weight gradient; `variantField`, ... are offsets of fields of
/// nsg_lookup_task.
struct TaskKernel {
  llvm::StringRef name;
  size_t variantField;
  size_t firstBlockField;
  size_t itemsField;
  bool reportsBadIds;
};
void createTaskKernel(mlir::gpu::GPUModuleOp module, const TaskKernel &kernel,
                      llvm::ArrayRef<Variant> variants);

/// One body of nsg_update, nsg_reduce, nsg_apply or nsg_update_by_sums.
struct RunKernel {
  llvm::StringRef name;
  /// Too few items to fill a GPU, so threads may have more registers.
  bool hasFewItems = false;
};
void createRunKernel(mlir::gpu::GPUModuleOp module, const RunKernel &kernel,
                     const Variant &variant);

/// nsg_partials.
void createPartialsKernel(mlir::gpu::GPUModuleOp module,
                          llvm::ArrayRef<Variant> variants);

/// Kernels of IdKernels.mlir or RouteKernels.mlir, with the functions that they
/// call.
void createTextKernels(mlir::gpu::GPUModuleOp module,
                       llvm::ArrayRef<llvm::StringRef> names);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_GPUKERNELS_H
