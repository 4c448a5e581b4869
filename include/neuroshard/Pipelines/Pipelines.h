//===- Pipelines.h - The order of the passes -------------------*- C++ -*-===//
//
// The one place where the way from the logical level to native code is
// written down.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PIPELINES_PIPELINES_H
#define NEUROSHARD_PIPELINES_PIPELINES_H

#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlanPasses.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace neuroshard {

/// What the pipelines that plan let the user say; the rest of the planner's
/// options have their defaults. See neuroshard-plan for each.
struct PlanningOptions : public mlir::PassPipelineOptions<PlanningOptions> {
  Option<std::string> algorithm{*this, "algorithm",
                                llvm::cl::desc("Search of neuroshard-plan"),
                                llvm::cl::init("default")};
  Option<std::string> objective{*this, "objective",
                                llvm::cl::desc("What is made small"),
                                llvm::cl::init("step")};
  Option<std::string> costModel{
      *this, "cost-model",
      llvm::cl::desc("Predictor of compute and communication times"),
      llvm::cl::init("auto")};
  Option<std::string> target{*this, "target",
                             llvm::cl::desc("What the plan's executor can run"),
                             llvm::cl::init("")};
  Option<int64_t> batch{*this, "batch",
                        llvm::cl::desc("Global batch in samples"),
                        llvm::cl::init(0)};
  Option<std::string> topology{
      *this, "topology",
      llvm::cl::desc("Devices, for a module without a topology"),
      llvm::cl::init("")};
  Option<std::string> deviceClass{
      *this, "device-class",
      llvm::cl::desc("Class of the devices of the module's 'shard.grid', for a "
                     "module without a topology"),
      llvm::cl::init("")};
  Option<uint64_t> seed{*this, "seed", llvm::cl::desc("Seed of random choices"),
                        llvm::cl::init(0)};

  /// The same as options of the passes.
  PlanOptions toPlanOptions() const;
  TopologyFromGridOptions toGridOptions() const;
};

/// Also how the step functions are made.
struct StepOptions : public PlanningOptions {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("Function whose lookups to move; default: the only one "
                     "that has any"),
      llvm::cl::init("")};
  Option<bool> training{*this, "training",
                        llvm::cl::desc("Add the update function"),
                        llvm::cl::init(false)};
};

/// For the naive program that says what the module means.
struct ReferenceOptions : public mlir::PassPipelineOptions<ReferenceOptions> {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("Function whose lookups to move; default: the only one "
                     "that has any"),
      llvm::cl::init("")};
  Option<bool> training{*this, "training",
                        llvm::cl::desc("Add the update function"),
                        llvm::cl::init(false)};
};

/// For the native program of one kind of device.
struct ToNativeOptions : public mlir::PassPipelineOptions<ToNativeOptions> {
  Option<std::string> program{
      *this, "program",
      llvm::cl::desc("Device program; may be left out if there is only one"),
      llvm::cl::init("")};
};

/// Logical to planned: the topology taken from the module's `shard.grid`,
/// unless `options` has one; equal lookups merged; the plan made or completed.
void buildToPlanned(mlir::OpPassManager &pm, const PlanOptions &options,
                    const TopologyFromGridOptions &grid = {});

/// Planned to sharded: outlined, differentiated in training, sharded, fused.
void buildPlannedToSharded(mlir::OpPassManager &pm, llvm::StringRef entry,
                           bool training);

/// Sharded to partitioned.
void buildShardedToPartitioned(mlir::OpPassManager &pm);

/// Logical to the reference program.
void buildReference(mlir::OpPassManager &pm, const ReferenceOptions &options);

/// Partitioned to the LLVM dialect.
void buildPartitionedToNative(mlir::OpPassManager &pm, llvm::StringRef program);

/// Registers neuroshard-to-planned, neuroshard-to-sharded and
/// neuroshard-to-partitioned, each from the logical level,
/// neuroshard-reference, and neuroshard-to-native from the partitioned level.
void registerPipelines();

} // namespace neuroshard

#endif // NEUROSHARD_PIPELINES_PIPELINES_H
