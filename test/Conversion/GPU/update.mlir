// An update: a run's gradients are added in order, the norm is summed over the lanes
// by shuffles among them alone, and one lane stores the state after all have read it.
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-distribute-over-lanes --neuroshard-lower-device-arrays | FileCheck %s
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-gpu-simplify --neuroshard-gpu-to-nvvm \
// RUN:   | FileCheck %s --check-prefix=NVVM

!ids = !neuroshard.jagged<["a"], i32, weighted>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 100 x 32 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table @u : 200 x 16 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 16) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [16, 32) on [1]
  neuroshard.shard "u0" of @u rows [0, 100) cols [0, 16) on [0]
  neuroshard.shard "u1" of @u rows [100, 200) cols [0, 16) on [1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"] weighted>, #neuroshard.lookup<sum @u["a"] weighted>]
  results [tensor<?x32xf32>, tensor<?x16xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 16 x f32 of 32 shards ["t0", "t1"] two_phase
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.local_table 1 : 16 x f32 of 16 shards ["u0", "u1"]
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.local_lookup pooled weighted of 0 in @e binds [0, 0]
  neuroshard.local_lookup pooled weighted of 1 in @e binds [1, 1]
}

// CHECK-LABEL: func.func private @nsk_weight_gradient_f32_d16_i32(
// CHECK: nvvm.shfl.sync bfly
// CHECK-LABEL: func.func private @nsk_partial_d16_weighted(
// CHECK-LABEL: func.func private @nsk_reduce_d16_weighted(
// CHECK-LABEL: func.func private @nsk_apply_rowwise_adagrad_f32_d16_of32_
// CHECK-LABEL: func.func private @nsk_update_rowwise_adagrad_f32_d16_weighted_of16_
// CHECK-SAME: %{{.*}}: !llvm.ptr<1>, %{{.*}}: !llvm.ptr<1>, %{{.*}}: index, %{{.*}}: index, %[[LANE:.*]]: index, %[[MASK:.*]]: i32)
// Four lanes, so two shuffles.
// CHECK-COUNT-2: nvvm.shfl.sync bfly %[[MASK]], %{{.*}}, %{{.*}}, %{{.*}} : f32 -> f32
// CHECK-NOT: nvvm.shfl.sync
// CHECK: nvvm.bar.warp.sync %[[MASK]]
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]]
// CHECK: scf.if %[[FIRST]] {
// CHECK: llvm.store
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>

// CHECK: gpu.func @nsg_lookup
// CHECK: gpu.func @nsg_weight_gradient
// CHECK: gpu.func @nsg_expand
// CHECK: gpu.func @nsg_ranges
// CHECK: gpu.func @nsg_partials
// CHECK: gpu.func @nsg_update_0(
// CHECK: gpu.func @nsg_reduce_0(
// CHECK: gpu.func @nsg_apply_0(

// NVVM: llvm.func @nsg_update_0({{.*}}attributes {{.*}}nvvm.kernel
// NVVM: llvm.call_intrinsic "llvm.nvvm.sqrt.rn.f"
// NVVM-NOT: __nv_
