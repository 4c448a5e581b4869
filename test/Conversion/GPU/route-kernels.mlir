// The kernels that move the values of an exchange are in all programs, also where nothing is trained.
// RUN: mlir-opt %S/../../../lib/Conversion/GPU/RouteKernels.mlir | FileCheck %s --check-prefix=TEXT
// RUN: mlir-opt %S/../../../lib/Conversion/GPU/ScaledKernels.mlir | FileCheck %s --check-prefix=SCALED
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-gpu-simplify | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 10) cols [0, 4) on [0]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["t0"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
}

// TEXT: gpu.func @nsg_move_rows(
// TEXT: gpu.func @nsg_add_up(
// SCALED: gpu.func @nsg_move_scaled_rows(

// CHECK: gpu.func @nsg_move_rows({{.*}}) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32
// CHECK: call @move_of_block
// CHECK-NOT: call
// The row and the column of a unit: 64 bits once for a block, then 32.
// CHECK: arith.divui %{{.*}} : index
// CHECK: arith.remui %{{.*}} : index
// CHECK: scf.for
// CHECK: arith.divui %{{.*}} : i32
// CHECK: arith.remui %{{.*}} : i32
// Values: sums, a quotient, a factor; rounded once.
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK: arith.mulf
// CHECK: arith.truncf %{{.*}} : f32 to f16
// CHECK: arith.truncf %{{.*}} : f32 to bf16
// Copies: 16, 8, 4, 2 or 1 bytes at a time.
// CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xi32>
// CHECK: llvm.store {{.*}} {alignment = 8 : i64} : i64
// CHECK: llvm.store {{.*}} {alignment = 4 : i64} : i32
// CHECK: llvm.store {{.*}} {alignment = 2 : i64} : i16
// CHECK: llvm.store {{.*}} {alignment = 1 : i64} : i8
// CHECK: gpu.return
// The move of a block is found by bisection, 128 bytes to each.
// CHECK: func.func private @move_of_block
// CHECK: scf.while
// CHECK: arith.muli %{{.*}}, %c128

// Rows with scales: the largest magnitude of a row by shuffles, the scale, and a byte for each value.
// CHECK: gpu.func @nsg_move_scaled_rows({{.*}}) kernel
// CHECK-SAME: nvvm.minctasm = 3 : i32
// CHECK: arith.maxui
// CHECK: gpu.shuffle xor
// CHECK: llvm.store {{.*}} {alignment = 1 : i64} : f32
// CHECK: llvm.store {{.*}} {alignment = 1 : i64} : i8
// CHECK: gpu.return
// CHECK: gpu.func @nsg_add_up({{.*}}) kernel
// CHECK-NOT: call
// CHECK-COUNT-2: gpu.shuffle  up
// CHECK-COUNT-2: gpu.shuffle  idx
// CHECK: gpu.return
