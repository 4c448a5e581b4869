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
  /// Begins a kernel at the end of the module; finish() ends it. At least
  /// `residentBlocks` blocks are to fit a multiprocessor: that bounds the
  /// registers, which the assembler otherwise bounds more than is good.
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

/// Blocks per multiprocessor of kernels on ids, which need few registers.
inline constexpr int32_t kSortResidentBlocks = 4;

/// Emits what runs only if `condition` holds.
void emitIf(mlir::ImplicitLocOpBuilder &b, mlir::Value condition,
            llvm::function_ref<void()> emit);

/// Emits a bisection: the first number in [low, high) for which
/// isBefore(number) does not hold, `high` if it holds for all. It must not hold
/// again after that.
mlir::Value findFirst(KernelBuilder &k, mlir::Value low, mlir::Value high,
                      llvm::function_ref<mlir::Value(mlir::Value)> isBefore);

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

/// nsg_update, nsg_reduce, nsg_apply or a small slots' one; `variantField` is a
/// field of nsg_slot.
struct RunKernel {
  llvm::StringRef name;
  size_t variantField;
  /// Holds a row's gradient alone, not weights and states beside it.
  bool onlySums = false;
  /// Too few items to fill a GPU: each may have more registers.
  bool hasFewItems = false;
};
void createRunKernel(mlir::gpu::GPUModuleOp module, const RunKernel &kernel,
                     llvm::ArrayRef<Variant> variants);

/// nsg_partials.
void createPartialsKernel(mlir::gpu::GPUModuleOp module,
                          llvm::ArrayRef<Variant> variants);

/// nsg_expand and nsg_ranges, which are the same in all programs.
void createExpandKernel(mlir::gpu::GPUModuleOp module);
void createRangesKernel(mlir::gpu::GPUModuleOp module);

/// Whether a task has a flag NSG_...
mlir::Value hasFlag(mlir::ImplicitLocOpBuilder &b, DeviceStruct task,
                    int32_t flag);

/// The position in a task's `ids` where an item's ids begin; that of the number
/// of items is where its last ids end.
mlir::Value getIdBegin(KernelBuilder &k, DeviceStruct task, mlir::Value item);

/// nsg_small_order.
void createSmallOrderKernel(mlir::gpu::GPUModuleOp module);

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_GPUKERNELS_H
