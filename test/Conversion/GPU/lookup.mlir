// A pooled lookup: 16 lanes to a row of 64, 16 bytes each; ids are checked, four
// rows are read before any is added, and the sum is stored by each lane.
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu="output=bf16" --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s --check-prefix=BF16
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-gpu-simplify | FileCheck %s --check-prefix=SIMPLE

!ids = !neuroshard.jagged<["a"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 100 x 64 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 64) on [0]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x64xf32>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 64 x f32 of 64 shards ["t0"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
}

// Nothing but the module is left, and it has a body for sums and means, with
// offsets and without.
// CHECK-NOT: neuroshard.
// CHECK: gpu.module @neuroshard
// CHECK-LABEL: func.func private @nsk_lookup_sum_f32_d64_i64(
// CHECK-SAME: %[[TASK:.*]]: !llvm.ptr<1>, %[[FIRST:.*]]: index, %[[END:.*]]: index, %[[LANE:.*]]: index, %{{.*}}: i32, %{{.*}}: index, %[[BAD:.*]]: !llvm.ptr<1>)
// A group's bags, 16 apart; the offsets of the next are read first.
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[END]] step %c16{{.*}} iter_args({{.*}}) -> (index, index)
// CHECK-COUNT-2: llvm.load %{{.*}} invariant {alignment = 8 : i64} : !llvm.ptr<1> -> i64
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (vector<4xf32>)
// CHECK: %[[GOOD:.*]] = arith.cmpi ult, %[[ROW:.*]], %{{.*}} : i64
// CHECK: arith.select %[[GOOD]], %[[ROW]]
// CHECK: llvm.atomicrmw umin %[[BAD]]
// CHECK-COUNT-4: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-4: arith.addf %{{.*}} : vector<4xf32>
// The rest of the bag: up to three rows at once, of which those that are there count.
// CHECK: scf.for {{.*}} -> (vector<4xf32>)
// CHECK: arith.minui
// CHECK-COUNT-3: llvm.load %{{.*}} invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: arith.select %{{.*}} : vector<4xf32>
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK: func.func private @nsk_lookup_sum_f32_d64_i64_mean(
// CHECK: arith.maxui
// CHECK: arith.divf {{.*}} : vector<4xf32>
// CHECK: func.func private @nsk_lookup_sum_f32_d64_i64_mean_fixed(
// CHECK: func.func private @nsk_lookup_sum_f32_d64_i64_fixed(

// CHECK-LABEL: gpu.func @nsg_lookup(
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
// CHECK-SAME: nvvm.minctasm = 4
// CHECK: gpu.block_id x
// CHECK: scf.index_switch
// CHECK: case 0 {
// CHECK: arith.minui
// CHECK: func.call @nsk_lookup_sum_f32_d64_i64(
// CHECK: case 3 {
// CHECK: func.call @nsk_lookup_sum_f32_d64_i64_fixed(
// Beside them, an inference program has the kernels of all programs only.
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_move_rows(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_move_scaled_rows(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_add_up(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_check_offsets(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_trust_offsets(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_count_bags(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_pack_ids(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_add_values(
// CHECK-NOT: gpu.func
// CHECK: gpu.func @nsg_divide_values(
// CHECK-NOT: gpu.func

// BF16: func.func private @nsk_lookup_sum_f32_d64_i64_to_bf16(
// BF16: arith.truncf %{{.*}} : vector<4xf32> to vector<4xbf16>
// BF16: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : vector<4xbf16>, !llvm.ptr<1>

// SIMPLE: gpu.module @neuroshard
// SIMPLE-NOT: func.func
// SIMPLE: gpu.func @nsg_lookup
// SIMPLE-NOT: func.call
// SIMPLE: gpu.func @nsg_move_rows
