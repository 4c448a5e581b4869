//===- Passes.td - The pass of neuroshard-reduce -----------*- tablegen -*-===//
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_TOOLS_REDUCE_PASSES
#define NEUROSHARD_TOOLS_REDUCE_PASSES

include "mlir/Pass/PassBase.td"

def Reduction : Pass<"neuroshard-reduction", "::mlir::ModuleOp"> {
  let summary = "Drop tables, lookups, shards, devices and sizes that a failure does not need";
  let description = [{
    Applies each edit of `Edits.h` to as many ops at once as the test allows: to all, then to halves, and
    so on to single ops, until no edit is left that keeps the failure. `test` is a program that gets the
    path of a module and exits with 1 if it still fails, and with 0 if not, as for `--reduction-tree`.

    ```mlir
    // Before, with a test that asks for the error "is not supported" on @b:
    neuroshard.table private @a : 1000000 x 64 x f32
    neuroshard.table private @b : 5000000 x 128 x f32 {optimizer = #neuroshard.optimizer<adam>}
    func.func @forward(%ids: !neuroshard.jagged<["a", "b"], i64>) -> (tensor<?x64xf32>, tensor<?x128xf32>) ...
    // After:
    neuroshard.table private @b : 8 x 4 x f32
    func.func @forward(%ids: !neuroshard.jagged<["b"], i64>) -> tensor<?x4xf32> ...
    ```
  }];
  let options = [
    Option<"test", "test", "std::string", /*default=*/"", "Program that tells whether a module still fails.">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::tensor::TensorDialect",
    "::neuroshard::ir::NeuroShardDialect"
  ];
}

#endif // NEUROSHARD_TOOLS_REDUCE_PASSES
