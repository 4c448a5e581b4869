//===- Passes.td - From GPU modules to NVVM ----------------*- tablegen -*-===//

#ifndef NEUROSHARD_CONVERSION_GPU_PASSES
#define NEUROSHARD_CONVERSION_GPU_PASSES

include "mlir/Pass/PassBase.td"

def DistributeOverLanes
    : Pass<"neuroshard-distribute-over-lanes", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Distribute functions on whole rows over the lanes of a warp";
  let description = [{
    Rewrites each `func.func` with the attribute `nsg.lanes`, a power of
    two up to 32, into the work of one lane in a group of that many neighbouring
    lanes. `nsg.row_columns` are the columns of a row: rows in arrays of one
    dimension begin at multiples of it, and are aligned to 16 bytes if their
    size is a multiple of that; rows of arrays of two dimensions always are.
    One argument is the lane's number in the group (`nsg.lane`), one has
    the bits of the group's lanes in the warp (`nsg.lane_mask`).

    - A vector of N elements becomes the lane's N / lanes neighbouring ones;
      transfers become `vector.load` and `vector.store` of these.
    - A sum over a vector adds the lane's elements and then those of the lanes,
      by shuffles. All lanes have the same bits. A group that is a whole warp
      uses `gpu.shuffle`, which all lanes of a warp run together; smaller groups
      of a warp may be at different places and use `nvvm.shfl.sync` with their
      mask.
    - Scalars are loaded and computed by every lane. A vector of one element is
      a scalar to store: the first lane does, once all have arrived.

    Values stay in registers; there is no shared memory and no barrier of the
    block. An op that the pass does not know is an error.

    ```mlir
    // Before:
    func.func private @norm(%x: memref<100x16xf32>, %norms: memref<100xf32>, %row: index,
        %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
        attributes {nsg.lanes = 4 : i64, nsg.row_columns = 16 : i64} {
      %v = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true]} : memref<100x16xf32>, vector<16xf32>
      %squares = arith.mulf %v, %v : vector<16xf32>
      %sum = vector.reduction <add>, %squares : vector<16xf32> into f32
      %one = vector.broadcast %sum : f32 to vector<1xf32>
      vector.transfer_write %one, %norms[%row] {in_bounds = [true]} : vector<1xf32>, memref<100xf32>
      return
    }
    // After:
    func.func private @norm(%x: memref<100x16xf32>, %norms: memref<100xf32>, %row: index,
        %lane: index, %mask: i32) {
      %before = arith.muli %lane, %c4 : index
      %column = arith.addi %c0, %before : index
      %v = vector.load %x[%row, %column] {alignment = 16 : i64} : memref<100x16xf32>, vector<4xf32>
      %squares = arith.mulf %v, %v : vector<4xf32>
      %s0 = vector.extract %squares[0] : f32 from vector<4xf32>
      ...
      %s3 = arith.addf %s2, %e3 : f32
      %of1 = nvvm.shfl.sync bfly %mask, %s3, %c1_i32, %c31_i32 : f32 -> f32
      %s4 = arith.addf %s3, %of1 : f32
      %of2 = nvvm.shfl.sync bfly %mask, %s4, %c2_i32, %c31_i32 : f32 -> f32
      %sum = arith.addf %s4, %of2 : f32
      %one = vector.broadcast %sum : f32 to vector<1xf32>
      nvvm.bar.warp.sync %mask : i32
      %first = arith.cmpi eq, %lane, %c0 : index
      scf.if %first {
        vector.store %one, %norms[%row] {alignment = 4 : i64} : memref<100xf32>, vector<1xf32>
      }
      return
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def LowerDeviceArrays
    : Pass<"neuroshard-lower-device-arrays", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Lower accesses to arrays behind device pointers";
  let description = [{
    Turns `vector.load`, `vector.store` and `memref.load` into loads and stores
    of the LLVM dialect. Their memrefs are casts of device pointers, of one or
    two dimensions; other memrefs are an error. Loads from an array whose cast
    has `nsg.invariant`, which does not change while the kernel runs, are
    invariant: on NVIDIA they go through the read-only cache. MLIR's own
    lowering has no such mark, and the emulator checks these accesses with their
    alignment.

    ```mlir
    // Before:
    %x = builtin.unrealized_conversion_cast %p : !llvm.ptr<1> to memref<100x16xf32> {nsg.invariant}
    %v = vector.load %x[%row, %column] {alignment = 16 : i64} : memref<100x16xf32>, vector<4xf32>
    // After:
    %before = arith.muli %row, %c16 : index
    %number = arith.addi %before, %column : index
    %i = arith.index_cast %number : index to i64
    %address = llvm.getelementptr %p[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %address invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def ExactMath : Pass<"neuroshard-exact-math"> {
  let summary = "Round square roots as IEEE 754 asks for";
  let description = [{
    MLIR's lowering of `math.sqrt` for NVIDIA calls libdevice, whose square root
    is approximate unless a module flag says otherwise. This pass uses the
    instruction that rounds correctly, for each element, so that kernels give
    the same bits as on the host.

    ```mlir
    // Before:
    %r = math.sqrt %x : f32
    // After:
    %r = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"(%x) : (f32) -> f32
    ```
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::vector::VectorDialect"
  ];
}

#endif // NEUROSHARD_CONVERSION_GPU_PASSES
