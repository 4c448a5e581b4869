//===- PlanPasses.td - The pass that plans -----------------*- tablegen -*-===//
//
// From the logical level to the planned one.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TRANSFORMS_PLANPASSES
#define NEUROSHARD_TRANSFORMS_PLANPASSES

include "mlir/Pass/PassBase.td"
include "neuroshard/Transforms/SearchOptions.td"

def Plan : Pass<"neuroshard-plan", "::mlir::ModuleOp"> {
  let summary = "Decide where every shard of every table lies";
  let description = [{
    Completes the module's plan, or makes one: searches for the shards with the
    lowest predicted cost that fit the memory of every device. Shards and pins
    that are in the plan are kept and planned around; a plan that is complete is
    only verified. The plan found passes the planner's independent verifier.

    The problem is what the module says: tables with their access statistics,
    lookups with the statistics of their ids, the topology, `neuroshard.batch`
    and `neuroshard.planning`. Options that change it are written back there, so
    that a later verification judges the plan by the same problem. Options left
    empty change nothing. They are the rows of SearchOptions.def and
    ProblemOptions.def; `previous` is a file of plan JSON.

    Every decision is emitted as a remark of the category `neuroshard-plan`, shown with
    `--remarks-filter=neuroshard-plan`. When there is no plan, the error says
    which limit binds, with numbers.

    ```mlir
    // Before:
    module attributes {neuroshard.batch = 1024 : i64} {
      neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">] ...
      neuroshard.table private @user : 1000 x 128 x f32
      neuroshard.plan @plan on @cluster semantics exact {
        neuroshard.shard "user_0" of @user rows [0, 1000) cols [0, 64) on [0]
      }
      ...
    }
    // After:
      neuroshard.plan @plan on @cluster semantics exact
          provenance {algorithm = "default", cost_model = "roofline", ...} {
        neuroshard.shard "user_0" of @user rows [0, 1000) cols [0, 64) on [0]
        neuroshard.shard "user_1" of @user rows [0, 1000) cols [64, 128) on [1]
      }
    ```
  }];
  let options = searchOptions # problemOptions;
  let statistics = [
    Statistic<"numTables", "tables", "Tables of the plan">,
    Statistic<"numShards", "shards", "Shards of the plan">,
    Statistic<"numKept", "kept-shards", "Shards that were written by hand">,
    Statistic<"numEvaluations", "evaluations", "Candidate plans evaluated">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

#endif // NEUROSHARD_TRANSFORMS_PLANPASSES
