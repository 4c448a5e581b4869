//===- PlannerConversion.h - Between the IR and the planner ----*- C++ -*-===//
//
// Tables, lookups, topology and plans as the planner's values, and back. Every
// direction is linear (n log n) in tables + lookups + shards + devices.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PLANNERCONVERSION_H
#define NEUROSHARD_TRANSFORMS_PLANNERCONVERSION_H

#include "neuroshard/Dialect/NeuroShard.h"
#include "neuroshard/Model/Diagnostics.h"
#include "neuroshard/Model/ShardingPlan.h"
#include "neuroshard/Model/ShardingProblem.h"

namespace neuroshard {

//===----------------------------------------------------------------------===//
// IR to planner
//===----------------------------------------------------------------------===//

/// The planning problem that a module states, without topology and pins:
/// tables in the order of their ops, one feature per `lookup` op in the order
/// of the ops, `neuroshard.batch` (0 when the module does not say it) and
/// `neuroshard.planning`. A table without optimizer counts as SGD, a lookup
/// without statistics as one id per sample. Ids are i64 and results f32 as soon
/// as one lookup's are. Errors are emitted on the op at fault; check()
/// judges the values.
mlir::FailureOr<ShardingProblem> problemFromIR(mlir::ModuleOp module);

/// The problem a plan answers: problemFromIR() of its module, its topology,
/// its semantics and its pins. Its shards are not constraints of the problem;
/// see fixShards().
mlir::FailureOr<ShardingProblem> problemFromIR(ir::PlanOp plan);

/// Devices, levels and hosts of the op, with the defaults of the device
/// classes. An unknown class is an error that lists the known ones.
mlir::FailureOr<Topology> topologyFromIR(ir::TopologyOp op);

/// Makes the shards that are in the plan constraints of the problem.
void fixShards(ir::PlanOp plan, ShardingProblem &problem);

/// Shards in the order of the ops, and the provenance.
mlir::FailureOr<ShardingPlan> planFromIR(ir::PlanOp plan);

//===----------------------------------------------------------------------===//
// Planner to IR
//===----------------------------------------------------------------------===//

/// A logical module: topology, tables, pins and fixed shards (as a partial
/// plan), and a function `@forward` that takes one jagged argument per batch
/// size of the features, weighted if one of these is, and returns the results
/// of all lookups. problemFromIR() gives the problem back. `loc` is the
/// location of all ops. Expects a problem for which checkWorkload() finds
/// nothing.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
problemToIR(const ShardingProblem &problem, mlir::Location loc);

/// Adds the topology at the begin of the module. The name is made unique.
ir::TopologyOp topologyToIR(const Topology &topology, mlir::ModuleOp module);

/// Sets `neuroshard.batch` and `neuroshard.planning` to what the problem says.
void planningToIR(const ShardingProblem &problem, mlir::ModuleOp module);

/// Adds a plan without shards after the tables and topologies of the module.
ir::PlanOp createPlan(mlir::ModuleOp module, llvm::StringRef name,
                      ir::TopologyOp topology, OptimizerSemantics semantics);

/// Gives the op the shards, semantics and provenance of `plan`. Pins and shards
/// that are there already stay; an error when `plan` does not have the latter.
mlir::LogicalResult planToIR(const ShardingPlan &plan, ir::PlanOp op);

} // namespace neuroshard

#endif // NEUROSHARD_TRANSFORMS_PLANNERCONVERSION_H
