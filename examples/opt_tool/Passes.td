//===- Passes.td - Passes of laptop-opt --------------------*- tablegen -*-===//
//
//===----------------------------------------------------------------------===//

#ifndef LAPTOP_PASSES
#define LAPTOP_PASSES

include "mlir/Pass/PassBase.td"

def CapRows : Pass<"cap-rows", "::mlir::ModuleOp"> {
  let summary = "Give tables at most so many rows";
  let description = [{
    A model with smaller tables runs on one machine, with the same lookups. Batches for it have smaller ids.
    Statistics of the rows' use are dropped from the tables that shrink, since they are those of other rows.
    A module with a plan is refused: its shards are cut for the rows as they were.

    With `rows=1000`

    ```mlir
    neuroshard.table private @user : 40000000 x 128 x f32
    ```

    becomes

    ```mlir
    neuroshard.table private @user : 1000 x 128 x f32
    ```
  }];
  let options = [
    Option<"rows", "rows", "int64_t", /*default=*/"100000", "Most rows of a table.">,
  ];
  let statistics = [
    Statistic<"numCapped", "capped", "Tables that lost rows">,
  ];
  let dependentDialects = ["::neuroshard::ir::NeuroShardDialect"];
}

#endif // LAPTOP_PASSES
