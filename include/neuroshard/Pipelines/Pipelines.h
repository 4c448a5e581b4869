//===- Pipelines.h - The order of the passes -------------------*- C++ -*-===//
//
// From the logical level to native code. Conversion/GPU/GpuPipelines.h has the
// order of the passes on GPU modules.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_PIPELINES_PIPELINES_H
#define NEUROSHARD_PIPELINES_PIPELINES_H

#include "neuroshard/Planner/SearchOptionTable.h"
#include "neuroshard/Transforms/Passes.h"
#include "neuroshard/Transforms/PlanPasses.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace neuroshard {

/// The options of the pipelines that plan: those of neuroshard-plan, and of
/// neuroshard-topology-from-grid the device class.
struct PlanningOptions : public mlir::PassPipelineOptions<PlanningOptions> {
#define PIPELINE_OPTION(ID, KEY, TYPE, DEFAULT)                                \
  Option<TYPE> ID{*this, searchOption(KEY).flag,                               \
                  llvm::cl::desc(searchOption(KEY).help),                      \
                  llvm::cl::init(DEFAULT)};
#define SEARCH_TEXT(ID, KEY, DEFAULT, ...)                                     \
  PIPELINE_OPTION(ID, KEY, std::string, DEFAULT)
#define SEARCH_WHOLE(ID, KEY, TYPE, DEFAULT, ...)                              \
  PIPELINE_OPTION(ID, KEY, TYPE, DEFAULT)
#define SEARCH_NUMBER(ID, KEY, DEFAULT, ...)                                   \
  PIPELINE_OPTION(ID, KEY, double, DEFAULT)
#include "neuroshard/Planner/SearchOptions.def"
#undef PIPELINE_OPTION
#define PIPELINE_OPTION(ID, FLAG, TYPE, DEFAULT, HELP)                         \
  Option<TYPE> ID{*this, FLAG, llvm::cl::desc(HELP), llvm::cl::init(DEFAULT)};
#define PROBLEM_TEXT(ID, FLAG, HELP)                                           \
  PIPELINE_OPTION(ID, FLAG, std::string, "", HELP)
#define PROBLEM_COUNT(ID, FLAG, HELP)                                          \
  PIPELINE_OPTION(ID, FLAG, Count, Count(), HELP)
#include "neuroshard/Transforms/ProblemOptions.def"
#undef PIPELINE_OPTION
  Option<std::string> deviceClass{
      *this, "device-class",
      llvm::cl::desc("Class of the devices of the module's 'shard.grid', for a "
                     "module without a topology"),
      llvm::cl::init("")};

  Option<bool> raiseLookups{
      *this, "raise-lookups",
      llvm::cl::desc("Make tables and lookups of what other dialects spell out "
                     "first; what looks like a lookup and cannot be raised is "
                     "an error"),
      llvm::cl::init(false)};

  /// The same as options of the passes.
  PlanOptions toPlanOptions() const;
  TopologyFromGridOptions toGridOptions() const;
};

/// The options of the pipelines that also make step functions.
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

/// The options of neuroshard-to-partitioned.
struct ToPartitionedOptions : public StepOptions {
  Option<bool> localReductions{
      *this, "local-reductions",
      llvm::cl::desc("Allow reductions over the samples: each device reduces "
                     "over its part of the batch"),
      llvm::cl::init(false)};
};

/// The options of neuroshard-reference.
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

/// The options of neuroshard-to-native.
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

/// Planned to sharded: outlined, differentiated in training, sharded by the
/// plan of this name (default: the only one of the module), fused.
void buildPlannedToSharded(mlir::OpPassManager &pm, llvm::StringRef entry,
                           bool training, llvm::StringRef plan = {});

/// Sharded to partitioned.
void buildShardedToPartitioned(mlir::OpPassManager &pm,
                               const PartitionOptions &options = {});

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
