// Kernels become functions over plain pointers, and what a thread asks the GPU for becomes
// calls of the emulator.

// RUN: neuroshard-opt %s --split-input-file --neuroshard-emulate-gpu | FileCheck %s

// The numbers of threads and blocks: in x from the emulator, in y and z there is one.
// CHECK-LABEL: module {
// CHECK-NOT: gpu
// The bytes of each parameter, for launches that copy them.
// CHECK: llvm.mlir.global external constant @nse_parameters_numbers(dense<[8, 4, 0]> : tensor<3xi32>)
// CHECK: func.func @numbers(%[[OUT:.*]]: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias}, %{{.*}}: i32) {
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @numbers(%out: !llvm.ptr<1> {llvm.noalias, llvm.align = 16 : i64}, %n: i32) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>} {
      // CHECK: %[[T:.*]] = call @nse_thread_id() : () -> i64
      // CHECK: %[[TX:.*]] = arith.index_cast %[[T]] : i64 to index
      %tx = gpu.thread_id x
      // CHECK: %[[TY:.*]] = arith.constant 0 : index
      %ty = gpu.thread_id y
      // CHECK: call @nse_block_id()
      %bx = gpu.block_id x
      // CHECK: call @nse_block_dim()
      %bd = gpu.block_dim x
      // CHECK: %[[BZ:.*]] = arith.constant 1 : index
      %bz = gpu.block_dim z
      // CHECK: call @nse_grid_dim()
      %gx = gpu.grid_dim x
      // CHECK: %[[L:.*]] = call @nse_thread_id()
      // CHECK: arith.remui %[[L]], %{{.*}} : i64
      %lane = gpu.lane_id
      // CHECK: %[[W:.*]] = call @nse_thread_id()
      // CHECK: arith.divui %[[W]], %{{.*}} : i64
      %warp = gpu.subgroup_id : index
      // CHECK: arith.constant 32 : index
      %size = gpu.subgroup_size : index
      // CHECK: %[[I:.*]] = call @nse_block_id()
      // CHECK: %[[D:.*]] = call @nse_block_dim()
      // CHECK: %[[B:.*]] = arith.muli %[[I]], %[[D]] : i64
      // CHECK: %[[S:.*]] = call @nse_thread_id()
      // CHECK: arith.addi %[[B]], %[[S]] : i64
      %global = gpu.global_id x
      // CHECK: %[[R:.*]] = call @nse_thread_id()
      // CHECK: %[[R32:.*]] = arith.trunci %[[R]] : i64 to i32
      %tid = nvvm.read.ptx.sreg.tid.x : i32
      %sum = arith.addi %tx, %ty : index
      %i = arith.index_cast %sum : index to i64
      // CHECK: %[[P:.*]] = llvm.getelementptr %[[OUT]][%{{.*}}] : (!llvm.ptr, i64) -> !llvm.ptr, i32
      %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      // CHECK-NOT: prefetch
      // CHECK: call @nse_access(%[[P]], %{{.*}}, %{{.*}}) : (!llvm.ptr, i64, i32) -> ()
      // CHECK-NEXT: llvm.store %[[R32]], %[[P]] : i32, !llvm.ptr
      nvvm.prefetch level = L2, %p : !llvm.ptr<1>
      llvm.store %tid, %p : i32, !llvm.ptr<1>
      // CHECK-NEXT: return
      gpu.return
    }
    // Functions that are no kernels are not launched.
    // CHECK: func.func private @helper(%{{.*}}: f32) -> f32
    gpu.func @helper(%x: f32) -> f32 {
      // CHECK: math.sqrt
      %root = llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"(%x) : (f32) -> f32
      gpu.return %root : f32
    }
  }
}

// -----

// Shuffles, votes and barriers keep their masks.
gpu.module @kernels {
  // CHECK-LABEL: func.func @meetings(
  // CHECK-SAME: %[[MASK:.*]]: i32, %[[V:.*]]: f32, %[[N:.*]]: i32, %[[P:.*]]: i1)
  gpu.func @meetings(%mask: i32, %v: f32, %n: i32, %p: i1) kernel {
    %clamp = arith.constant 31 : i32
    // CHECK: %[[BITS:.*]] = arith.bitcast %[[V]] : f32 to i32
    // CHECK: %[[BFLY:.*]] = arith.constant 0 : i32
    // CHECK: %[[R:.*]] = call @nse_shuffle(%[[MASK]], %[[BITS]], %[[N]], %{{.*}}, %[[BFLY]]) : (i32, i32, i32, i32, i32) -> i64
    // CHECK: %[[LOW:.*]] = arith.trunci %[[R]] : i64 to i32
    // CHECK: arith.bitcast %[[LOW]] : i32 to f32
    %a = nvvm.shfl.sync bfly %mask, %v, %n, %clamp : f32 -> f32
    // CHECK: %[[DOWN:.*]] = arith.constant 2 : i32
    // CHECK: %[[R2:.*]] = call @nse_shuffle(%[[MASK]], %[[N]], %[[N]], %{{.*}}, %[[DOWN]])
    // CHECK: %[[VALUE:.*]] = arith.trunci %[[R2]] : i64 to i32
    // CHECK: %[[HIGH:.*]] = arith.shrui %[[R2]], %{{.*}} : i64
    // CHECK: %[[VALID:.*]] = arith.trunci %[[HIGH]] : i64 to i1
    // CHECK: llvm.insertvalue %[[VALUE]], %{{.*}}[0] : !llvm.struct<(i32, i1)>
    // CHECK: llvm.insertvalue %[[VALID]], %{{.*}}[1] : !llvm.struct<(i32, i1)>
    %b = nvvm.shfl.sync down %mask, %n, %n, %clamp {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    // The first lanes of the warp take part in a gpu.shuffle: -1 >> (32 - width).
    // CHECK: %[[WIDTH:.*]] = arith.constant 8 : i32
    // CHECK: %[[OTHERS:.*]] = arith.subi %{{.*}}, %[[WIDTH]] : i32
    // CHECK: %[[FIRST:.*]] = arith.shrui %{{.*}}, %[[OTHERS]] : i32
    // CHECK: %[[LAST:.*]] = arith.subi %[[WIDTH]], %{{.*}} : i32
    // CHECK: call @nse_shuffle(%[[FIRST]], %{{.*}}, %[[N]], %[[LAST]], %{{.*}})
    %width = arith.constant 8 : i32
    %c, %valid = gpu.shuffle xor %v, %n, %width : f32
    // CHECK: call @nse_shuffle(%{{.*}}, %{{.*}}, %[[N]], %{{.*}}, %{{.*}})
    %d, %valid2 = gpu.shuffle up %v, %n, %width : f32
    // CHECK: %[[PRED:.*]] = arith.extui %[[P]] : i1 to i32
    // CHECK: call @nse_ballot(%[[MASK]], %[[PRED]]) : (i32, i32) -> i32
    %e = nvvm.vote.sync ballot %mask, %p -> i32
    // CHECK: %[[ALL:.*]] = call @nse_ballot
    // CHECK: arith.cmpi eq, %[[ALL]], %[[MASK]] : i32
    %f = nvvm.vote.sync all %mask, %p -> i1
    // CHECK: call @nse_warp_sync(%[[MASK]]) : (i32) -> ()
    nvvm.bar.warp.sync %mask : i32
    // CHECK: call @nse_barrier() : () -> ()
    gpu.barrier
    // CHECK: call @nse_barrier() : () -> ()
    nvvm.barrier
    gpu.return
  }
}
// CHECK: func.func private @nse_shuffle(i32, i32, i32, i32, i32) -> i64
// CHECK-NOT: func.func private @nse_shuffle

// -----

// Memrefs of static shape are passed as bare pointers; casts between spaces vanish.
gpu.module @kernels {
  // CHECK-LABEL: func.func @memrefs(
  // CHECK-SAME: %[[M:.*]]: !llvm.ptr {llvm.noalias}, %[[P:.*]]: !llvm.ptr)
  gpu.func @memrefs(%m: memref<64x4xf32, #gpu.address_space<global>> {llvm.noalias}, %p: !llvm.ptr<1>) kernel {
    // CHECK: llvm.insertvalue %[[M]]
    // CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<64x4xf32>
    %c0 = arith.constant 0 : index
    // CHECK: memref.load %[[X]]
    %v = memref.load %m[%c0, %c0] : memref<64x4xf32, #gpu.address_space<global>>
    // CHECK-NOT: addrspacecast
    // CHECK: llvm.store %{{.*}}, %[[P]] : f32, !llvm.ptr
    %q = llvm.addrspacecast %p : !llvm.ptr<1> to !llvm.ptr
    llvm.store %v, %q : f32, !llvm.ptr
    gpu.return
  }
}

// -----

// Every access is told to the emulator first: its bytes, and whether it reads (0), reads as
// invariant (1), writes (2) or is atomic (3), with 256 x log2 of its alignment.
gpu.module @kernels {
  // CHECK-LABEL: func.func @accesses(
  // CHECK-SAME: %[[P:.*]]: !llvm.ptr)
  gpu.func @accesses(%p: !llvm.ptr<1>) kernel {
    // CHECK: %[[B4:.*]] = arith.constant 4 : i64
    // CHECK: %[[READ:.*]] = arith.constant 512 : i32
    // CHECK: call @nse_access(%[[P]], %[[B4]], %[[READ]])
    // CHECK-NEXT: llvm.load
    %x = llvm.load %p : !llvm.ptr<1> -> f32
    // CHECK: %[[B16:.*]] = arith.constant 16 : i64
    // CHECK: %[[INVARIANT:.*]] = arith.constant 1025 : i32
    // CHECK: call @nse_access(%[[P]], %[[B16]], %[[INVARIANT]])
    // CHECK-NEXT: llvm.load
    %v = llvm.load %p invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
    // CHECK: %[[B8:.*]] = arith.constant 8 : i64
    // CHECK: %[[WRITE:.*]] = arith.constant 770 : i32
    // CHECK: call @nse_access(%[[P]], %[[B8]], %[[WRITE]])
    // CHECK-NEXT: llvm.store
    %h = arith.constant dense<0.0> : vector<4xf16>
    llvm.store %h, %p : vector<4xf16>, !llvm.ptr<1>
    // CHECK: %[[A8:.*]] = arith.constant 8 : i64
    // CHECK: %[[ATOMIC:.*]] = arith.constant 771 : i32
    // CHECK: call @nse_access(%[[P]], %[[A8]], %[[ATOMIC]])
    // CHECK-NEXT: llvm.atomicrmw
    %c = arith.constant 1 : i64
    %old = llvm.atomicrmw umin %p, %c monotonic : !llvm.ptr<1>, i64
    gpu.return
  }
}
