//===- Passes.td - Conversions out of the dialect ----------*- tablegen -*-===//
//
// To the naive reference program, and to calls of the runtime.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_PASSES
#define NEUROSHARD_CONVERSION_PASSES

include "mlir/Pass/PassBase.td"

def LowerReference : Pass<"neuroshard-lower-reference", "::mlir::ModuleOp"> {
  let summary = "Lower logical IR to the naive program that defines its meaning";
  let description = [{
    The truth for tests: one device, no plan, plain loops that accumulate in
    f32 in the order of the ids and round once, with no code in common with the
    kernels. Takes level 1, also after `neuroshard-outline` and
    `neuroshard-differentiate`.

    A table becomes an argument of every function that reads or updates it,
    itself or through calls: the weights, marked `neuroshard.weights`, and,
    where it is updated, each f32 array of optimizer state after them, marked
    `neuroshard.state`. They come after the other arguments, in the order of
    the table ops. A jagged value becomes its ids, its offsets (i64), and its
    weights, if any. Results are new buffers. Ids are not checked: they must
    be rows of their tables.

    ```mlir
    // Before:
    neuroshard.table @user : 1000 x 64 x f32
    func.func @forward(%ids: !neuroshard.jagged<["user_id"], i64>) -> tensor<?x64xf32> {
      %u = neuroshard.lookup sum @user[%ids, "user_id"] : ... -> tensor<?x64xf32>
      return %u : tensor<?x64xf32>
    }
    // After:
    func.func @forward(%ids: tensor<?xi64>, %offsets: tensor<?xi64>,
                       %user: memref<1000x64xf32> {neuroshard.weights = "user"})
        -> tensor<?x64xf32> {
      for each bag: sum the rows of its ids
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect"
  ];
}

def ConvertToRuntime
    : Pass<"convert-neuroshard-to-runtime", "::mlir::ModuleOp"> {
  let summary = "Turn partitioned IR into one program that calls the runtime";
  let description = [{
    Takes level 4 and keeps one device program: its kernels and their table
    (the symbol `neuroshard_program`), and the SPMD functions as calls of the
    `nsrt_*` interface of Runtime/ProgramABI.h. A jagged value becomes its ids,
    its offsets (i64), and its weights, if any; the device and what is in
    flight become pointers. The device argument is marked `nsrt.device`.
    Exchanges are numbered in the order of their ops, as in the manifest.

    ```mlir
    // Before:
    func.func @embeddings_start(%dev: !neuroshard.device, %ids: !ids)
        -> !neuroshard.pending<!neuroshard.routed> {
      %r = neuroshard.route @ids(%dev, %ids) : !ids
      ...
    // After:
    func.func @embeddings_start(%dev: !llvm.ptr {nsrt.device}, %ids: tensor<?xi64>,
                                %offsets: tensor<?xi64>) -> !llvm.ptr {
      %r = call @nsrt_route(%dev, %exchange, ids, number, offsets, number, null)
      ...
    ```
  }];
  let options = [
    Option<"program", "program", "std::string", "",
           "The device program to keep, such as @program0; may be left out if there is only one.">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::tensor::TensorDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif // NEUROSHARD_CONVERSION_PASSES
