// Shards of few rows are updated without a sort: kernels of the sort are there for other
// slots alone, no thread of nsg_small_order waits for another, and an update of sums has no
// factors. Small are slots whose longest shard is, and which need one phase.
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu="small-rows=50" --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu="small-rows=49" --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s --check-prefix=SORT
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu="small-rows=0" --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s --check-prefix=SORT
// RUN: not neuroshard-opt %s --convert-neuroshard-to-gpu="small-rows=1025" 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not neuroshard-opt %s --convert-neuroshard-to-gpu="small-rows=-1" 2>&1 | FileCheck %s --check-prefix=FEW

!ids = !neuroshard.jagged<["a"], i32>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 10 x 32 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table @u : 90 x 16 x f32 {optimizer = #neuroshard.optimizer<adam>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 10) cols [0, 16) on [0]
  neuroshard.shard "t1" of @t rows [0, 10) cols [16, 32) on [1]
  neuroshard.shard "u0" of @u rows [0, 40) cols [0, 16) on [0]
  neuroshard.shard "u1" of @u rows [40, 90) cols [0, 16) on [1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<mean @u["a"]>]
  results [tensor<?x32xf32>, tensor<?x16xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 16 x f32 of 32 shards ["t0", "t1"] two_phase
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.local_table 1 : 16 x f32 of 16 shards ["u0", "u1"]
    {optimizer = #neuroshard.optimizer<adam>}
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  neuroshard.local_lookup pooled of 1 in @e binds [1, 1]
}

// The sums have factors, in spans that are loaded piece by piece.
// CHECK-LABEL: func.func private @nsk_small_sums_d16_weighted(
// CHECK: arith.remui
// CHECK: scf.for
// CHECK-COUNT-2: llvm.load %{{.*}} invariant {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
// CHECK: nvvm.bar.warp.sync
// The update adds up what they have, of rows that have something.
// CHECK-LABEL: func.func private @nsk_update_adam_f32_d16_b{{.*}}_small(
// CHECK: %[[HAS:.*]] = arith.cmpf ogt
// CHECK-NEXT: scf.if %[[HAS]] {
// CHECK-NOT: nvvm.
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>

// CHECK: gpu.func @nsg_expand
// CHECK: gpu.func @nsg_ranges
// CHECK: gpu.func @nsg_partials
// CHECK-NOT: @nsg_update
// CHECK: gpu.func @nsg_reduce
// CHECK: gpu.func @nsg_apply
// CHECK: gpu.func @nsg_small_order({{.*}} {{{$}}
// CHECK-NOT: nvvm.
// CHECK-NOT: atomic
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i64
// CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : i64
// CHECK: gpu.func @nsg_small_sums
// CHECK: gpu.func @nsg_small_update

// SORT-NOT: small
// SORT: gpu.func @nsg_update
// SORT-NOT: small

// MANY: expected small-rows from 0 to 1024, got: 1025
// FEW: expected small-rows from 0 to 1024, got: -1
