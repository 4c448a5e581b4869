//===- Variants.h - Specialised bodies of a GPU's kernels ------*- C++ -*-===//
//
// A variant is a device function on whole rows in the GPU module, made from a
// kernel body for one dim, type and optimizer. It says over how many lanes
// neuroshard-distribute-over-lanes is to distribute it.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_LIB_CONVERSION_GPU_VARIANTS_H
#define NEUROSHARD_LIB_CONVERSION_GPU_VARIANTS_H

#include "neuroshard/Conversion/GPU/LaneShape.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

namespace neuroshard {

/// Bodies with equal specifications are the same.
struct VariantSpec {
  KernelSpec kernel;
  /// Of lookups: type of the output; whether sums are divided by the number of
  /// ids; whether all bags have one length.
  ElementType output = ElementType::F32;
  bool isMean = false;
  bool isFixed = false;
  /// An update by sums of rows.
  bool isBySums = false;
  /// Of updates and their phases: several runs, most of one gradient.
  bool areShort = false;
};

struct Variant {
  mlir::func::FuncOp function;
  /// Takes several short runs, one after the other; null if there is no such
  /// body.
  mlir::func::FuncOp ofShortRuns;
  LaneShape shape;
  /// Needs more registers than others of its kernel.
  bool isLarge = false;
};

/// The bodies of one kernel, each once.
class VariantSet {
public:
  explicit VariantSet(mlir::gpu::GPUModuleOp module) : module(module) {}

  /// The number of the variant; creates it if it is new.
  mlir::FailureOr<int64_t> getOrCreate(const VariantSpec &spec);
  llvm::ArrayRef<Variant> get() const { return variants; }
  bool empty() const { return variants.empty(); }

private:
  mlir::func::FuncOp create(const VariantSpec &spec, const LaneShape &shape);

  mlir::gpu::GPUModuleOp module;
  llvm::StringMap<int64_t> numberOfName;
  llvm::SmallVector<Variant> variants;
};

/// Arguments of the device function of a lookup or weight gradient: the task,
/// the group's first item, the end of the block's items, lane and mask of the
/// group, the number of the task, where bad ids are reported (null for weight
/// gradients).
enum TaskArgument {
  kTask,
  kTaskItem,
  kTaskEnd,
  kTaskLane,
  kTaskMask,
  kTaskNumber,
  kBadId
};
/// Arguments of the device function of an update: the slot, the sorted
/// positions, the group's first item and the end of its items, which only
/// bodies of short runs read, the first run of the slot, lane and mask of the
/// group.
enum RunArgument {
  kSlot,
  kSorted,
  kRunItem,
  kRunEnd,
  kFirstRun,
  kRunLane,
  kRunMask
};

} // namespace neuroshard

#endif // NEUROSHARD_LIB_CONVERSION_GPU_VARIANTS_H
