//===- Passes.td - Passes on the way to native code --------*- tablegen -*-===//
//
// They complement MLIR's passes between a program of standard dialects and a
// library that the runtime can call.
//
//===----------------------------------------------------------------------===//

#ifndef NEUROSHARD_CONVERSION_NATIVE_PASSES
#define NEUROSHARD_CONVERSION_NATIVE_PASSES

include "mlir/Pass/PassBase.td"

def ProtectArguments : Pass<"neuroshard-protect-arguments", "::mlir::ModuleOp"> {
  let summary = "Keep bufferization from writing into the caller's tensors";
  let description = [{
    Marks the tensor arguments of public functions `bufferization.writable =
    false`, unless the attribute is there already. By default One-Shot
    Bufferize would write into a caller's input.

    ```mlir
    // Before:
    func.func @f(%x: tensor<?xf32>)
    // After:
    func.func @f(%x: tensor<?xf32> {bufferization.writable = false})
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def SeparateResults
    : Pass<"neuroshard-separate-results", "::mlir::func::FuncOp"> {
  let summary = "Give each result of a public function a buffer of its own";
  let description = [{
    The caller frees each result by itself, but One-Shot Bufferize returns one
    buffer twice if a tensor is two results. This pass copies tensors that are
    returned a second time, as they are or reshaped, and results of branches
    if there are other results.

    ```mlir
    // Before:
    return %x, %x : tensor<?xf32>, tensor<?xf32>
    // After:
    %0 = bufferization.alloc_tensor() copy(%x) : tensor<?xf32>
    return %x, %0 : tensor<?xf32>, tensor<?xf32>
    ```
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect"];
}

def OrderReductions : Pass<"neuroshard-order-reductions"> {
  let summary = "Make the innermost loop of a reduction a parallel one";
  let description = [{
    Permutes the loops of every `linalg.generic` that has both: parallel loops
    first, then the reductions in their order, and innermost the parallel loop
    over the last dimension of the result, over which LLVM can vectorise
    without adding in another order. Each element's sum keeps its order, so
    the result keeps its bits. An op that would then read some input with a
    stride is left as it is.

    ```mlir
    // Before: (i, j, k) = parallel, parallel, reduction
    linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]}
    // After: (i, k, j)
    linalg.generic {indexing_maps = [(i, k, j) -> (i, k), (i, k, j) -> (k, j), (i, k, j) -> (i, j)]}
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numPermuted", "permuted", "Number of operations whose loops were permuted">
  ];
}

def FuseElementwise : Pass<"neuroshard-fuse-elementwise"> {
  let summary = "Compute elementwise ops in one pass over memory";
  let description = [{
    Fuses every elementwise `linalg.generic` on tensors that has one use into
    an elementwise user, and transpositions into all users, whose maps then say
    where the elements are. What is computed for an element stays the same, so
    the result keeps its bits. An elementwise op is not fused into a sum, which
    would compute it for every product.

    ```mlir
    // Before:
    %wt = linalg.generic {indexing_maps = [(i, j) -> (j, i), (i, j) -> (i, j)]} ins(%w) { yield }
    linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (k, j), (i, j, k) -> (i, j)]} ins(%x, %wt)
    // After:
    linalg.generic {indexing_maps = [(i, j, k) -> (i, k), (i, j, k) -> (j, k), (i, j, k) -> (i, j)]} ins(%x, %w)
    ```
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
}

def TileContractions
    : Pass<"neuroshard-tile-contractions", "::mlir::func::FuncOp"> {
  let summary = "Compute matrix products by tiles of registers";
  let description = [{
    Replaces every `linalg.generic` on buffers of f32 that adds products of two
    inputs over one reduction loop, as a matrix product with any number of
    batches does, by loops over packed blocks of the right input and tiles of
    sums in registers. Each element's sum keeps its order; `fused` rounds each
    product and sum once, as FMA instructions do. Rows of the result must be
    contiguous.

    ```mlir
    // Before:
    linalg.generic {indexing_maps = [(i, k, j) -> (i, k), (i, k, j) -> (k, j), (i, k, j) -> (i, j)]}
    // After, within loops over blocks:
    %sums:6 = scf.for %k = ... iter_args(%sum0 = %row0, ...) -> (vector<16xf32>, ...) {
      %right = vector.load %packed[%k, %c0]
      %left = memref.load %a[%i, %k]
      %next = math.fma (broadcast %left), %right, %sum0
    ```
  }];
  let options = [
    Option<"rows", "rows", "int64_t", "6", "Rows of the tile of sums">,
    Option<"columns", "columns", "int64_t", "16", "Columns of the tile of sums">,
    Option<"fused", "fused", "bool", "false", "Round each product and sum once">,
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
  let statistics = [
    Statistic<"numTiled", "tiled", "Number of matrix products that were tiled">
  ];
}

def DecomposeAggregates : Pass<"neuroshard-decompose-aggregates"> {
  let summary = "Take structured ops apart that have no loops of their own";
  let description = [{
    Replaces every op on tensors with linalg's AggregatedOpInterface by its
    decomposition into structured ops.

    ```mlir
    // Before:
    linalg.softmax dimension(1) ins(%x) outs(%y)
    // After: maximum, exponential of the difference, sum and division
    linalg.generic ... linalg.generic ... linalg.generic ... linalg.generic ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def LowerStridedCopies : Pass<"neuroshard-lower-strided-copies"> {
  let summary = "Copy strided buffers by loops";
  let description = [{
    Replaces every `memref.copy` that is not of contiguous memory to contiguous
    memory by a `linalg.copy`, which becomes loops. MLIR would otherwise call
    its own runtime library for it.

    ```mlir
    // Before:
    memref.copy %x, %y : memref<?x13xf32> to memref<?x13xf32, strided<[141, 1]>>
    // After:
    linalg.copy ins(%x : memref<?x13xf32>) outs(%y : memref<?x13xf32, strided<[141, 1]>>)
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect"];
}

def InvokeWrappers : Pass<"neuroshard-invoke-wrappers", "::mlir::ModuleOp"> {
  let summary = "Add a uniform entry point for every public function";
  let description = [{
    For every public `func.func @f` with a body adds `nsrt_invoke_f`, which
    takes one array of pointers: the result struct first if `f` has results,
    then one for each argument. A memref or scalar is read through its pointer
    (a memref as its strided descriptor); an argument with the attribute
    `nsrt.device` is the pointer itself.

    ```mlir
    // Before:
    func.func @f(%device: !llvm.ptr {nsrt.device}, %x: memref<?xf32>) -> memref<?xf32>
    // After, in addition:
    llvm.func @nsrt_invoke_f(%args: !llvm.ptr) {
      %device = llvm.load (args[1])
      %x = load the descriptor that args[2] points to
      %result = call @f(%device, %x)
      store the descriptor of %result to where args[0] points
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::func::FuncDialect"];
}

#endif // NEUROSHARD_CONVERSION_NATIVE_PASSES
