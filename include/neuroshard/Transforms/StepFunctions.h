//===- StepFunctions.h - Start, wait and update of a module ----*- C++ -*-===//
//
// From neuroshard-outline on these functions hold all lookups and updates of a
// module.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_STEPFUNCTIONS_H
#define NEUROSHARD_TRANSFORMS_STEPFUNCTIONS_H

#include "neuroshard/Artifact/StepNames.h"
#include "neuroshard/Dialect/NeuroShard.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace neuroshard {

/// The step functions of a module at the logical, planned or sharded level.
struct StepFunctions {
  mlir::func::FuncOp start, wait;
  ir::SuspendOp suspend;
  ir::ResumeOp resume;
  /// Null without training.
  mlir::func::FuncOp update;
  ir::SaveOp save;
  ir::RestoreOp restore;

  bool isTraining() const { return static_cast<bool>(update); }
  /// Number of lookups, which are the first results of wait.
  unsigned getNumLookups();
  /// Values that wait returns for its lookups.
  mlir::OperandRange getLookupResults();
  /// The arguments of update that hold the gradients of the lookups.
  llvm::MutableArrayRef<mlir::BlockArgument> getGradients();
  mlir::Value getLearningRate();
  mlir::Value getStep();
  /// The plan that distributes the values of the step, which start names from
  /// the sharded level on; an error if it names none of the module.
  mlir::FailureOr<ir::PlanOp> getPlan();
  /// The argument of start that distributed ids of any of the functions come
  /// from; nullopt if there is none.
  std::optional<unsigned> getInput(mlir::Value ids);

  /// Finds the functions. An error says which is missing or has a form that
  /// neuroshard-outline and neuroshard-differentiate do not make.
  static mlir::FailureOr<StepFunctions> find(mlir::ModuleOp module);
};

/// The calls of a function in its module. Goes through all of it.
llvm::SmallVector<mlir::func::CallOp> callsOf(mlir::func::FuncOp function);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_STEPFUNCTIONS_H
