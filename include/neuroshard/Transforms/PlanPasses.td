//===- PlanPasses.td - Passes that plan and price ----------*- tablegen -*-===//
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

def Price : Pass<"neuroshard-price", "::mlir::ModuleOp"> {
  let summary = "Say what the plan, its shards and its tables cost";
  let description = [{
    Emits remarks on a planned module, which does not change. `neuroshard-lsp-server` shows the same texts in
    editors. The plan must cover all tables and pass the planner's verifier.

    - On the plan: the predicted step and its parts, the device that computes longest, the fullest device, how
      the plan was made, and what the cost model says of its predictions.
    - On each shard: its bytes on each device that holds it, and how long its lookups and updates would take
      alone on such a device. Fused with other shards they take less.
    - On each table: its bytes, how it is cut, and where it is.

    The objective is that of the plan's provenance, else `step`.

    ```mlir
    // remark: 1000 x 64, 250.0 KiB of weights and optimizer states; table_wise: 1 shard on device 0
    neuroshard.table private @user : 1000 x 64 x f32
    // remark: predicted step 0.093 ms by 'roofline': input 0.013 ms, forward 0.008 ms, ...
    // remark: device 0 computes longest: lookups 0.008 ms, updates 0.022 ms; ...
    neuroshard.plan @plan on @cluster semantics exact {
      // remark: device 0: 3.2 MiB: weights 250.0 KiB, optimizer states 0 B, ...
      neuroshard.shard "user_0" of @user rows [0, 1000) cols [0, 64) on [0]
    }
    ```
  }];
  let options = [
    Option<"plan", "plan", "std::string", /*default=*/"",
      "Plan to price. Default: the only one of the module.">,
    Option<"costModel", "cost-model", "std::string", /*default=*/"\"auto\"",
      "What predicts: see the option of neuroshard-plan.">
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

#endif // NEUROSHARD_TRANSFORMS_PLANPASSES
