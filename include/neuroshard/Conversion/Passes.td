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
    Tests compare with it: one device, no plan, plain loops that accumulate in
    f32 in the order of the ids and round once. It shares no code with the
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
    `nsrt_*` interface of Runtime/HostProgramABI.h. A jagged value becomes its ids,
    its offsets (i64), and its weights, if any; the device, routed ids
    and partial rows become pointers. The device argument is marked `nsrt.device`.
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

def ConvertToGpu : Pass<"convert-neuroshard-to-gpu", "::mlir::ModuleOp"> {
  let summary = "Turn partitioned IR into the GPU module of one program";
  let description = [{
    Takes level 4 and leaves one `gpu.module @neuroshard` with the kernels of
    one device program, as RuntimeCuda/GpuKernelABI.h describes them: per kernel of a step
    one `gpu.func` that finds its work in arrays in device memory and calls the
    body for its dim, types and optimizer. The bodies are those of the host's
    kernels, on whole rows, with attributes that tell
    `neuroshard-distribute-over-lanes` which lanes share a row.

    ```mlir
    // Before:
    neuroshard.device_program @program0 for [0] {
      neuroshard.local_table 0 : 64 x f32 of 64 shards ["user"]
      neuroshard.local_lookup pooled of 0 in @exchange0 binds [0]
    }
    // After:
    gpu.module @neuroshard {
      func.func private @nsk_lookup_sum_f32_d64_i64(%task: !llvm.ptr<1>, %bag: index,
          %end: index, %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask},
          %number: index, %bad_id: !llvm.ptr<1>)
          attributes {nsg.lanes = 16 : i64, nsg.row_columns = 64 : i64} {
        sum the rows of each bag as vectors of 64 columns
      }
      gpu.func @nsg_lookup(%tasks: !llvm.ptr<1>, %task_of_block: !llvm.ptr<1>,
                           %bad_id: !llvm.ptr<1>) kernel {
        find the task of the block; call its body for the thread's bag
      }
    }
    ```
  }];
  let options = [
    Option<"program", "program", "std::string", "",
           "The device program to convert, such as @program0; may be left out if there is only one.">,
    Option<"output", "output", "::neuroshard::ElementType",
           "::neuroshard::ElementType::F32", "Type of the results.",
           [{::llvm::cl::values(
             clEnumValN(::neuroshard::ElementType::F32, "f32", "Single precision."),
             clEnumValN(::neuroshard::ElementType::F16, "f16", "Half precision."),
             clEnumValN(::neuroshard::ElementType::BF16, "bf16", "Brain floating point."))}]>
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::memref::MemRefDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::ub::UBDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif // NEUROSHARD_CONVERSION_PASSES
