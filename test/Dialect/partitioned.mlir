// Exchanges, device programs and the steps of SPMD functions print as they parse.
// RUN: neuroshard-dialect-opt %s | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64, weighted>
!pending = !neuroshard.pending<!neuroshard.routed>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 100 x 8 x bf16 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
}

// CHECK: neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"] weighted>, #neuroshard.lookup<unpooled @t["a"]>] results [tensor<?x8xf32>, tensor<?x8xf32>]
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"] weighted>, #neuroshard.lookup<unpooled @t["a"]>]
  results [tensor<?x8xf32>, tensor<?x8xf32>]

// CHECK: neuroshard.exchange @joined
neuroshard.exchange @joined of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"] weighted>, #neuroshard.lookup<mean @t["a"]>]
  results [tensor<?x8xf16>, tensor<?x8xf16>]

// CHECK: neuroshard.device_program @program0 for [0, 1] {
neuroshard.device_program @program0 for [0, 1] {
  // CHECK-NEXT: neuroshard.local_table 0 : 4 x bf16 of 8 shards ["t0", "t1"] two_phase {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.local_table 0 : 4 x bf16 of 8 shards ["t0", "t1"] two_phase
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  // CHECK-NEXT: neuroshard.local_lookup pooled weighted of 0 in @e binds [0, 0]
  neuroshard.local_lookup pooled weighted of 0 in @e binds [0, 0]
  // CHECK-NEXT: neuroshard.local_lookup of 0 in @e binds [1, 1]
  neuroshard.local_lookup of 0 in @e binds [1, 1]
}

// CHECK-LABEL: func.func @step
func.func @step(%device: !neuroshard.device, %ids: !ids, %g: tensor<?x8xf32>, %lr: f32, %step: i64) -> tensor<?xf32> {
  // CHECK: %[[R:.*]] = neuroshard.route @e(%{{.*}}, %{{.*}}) : !ids
  %r = neuroshard.route @e(%device, %ids) : !ids
  // CHECK: %[[P:.*]] = neuroshard.run_lookup @e(%{{.*}}, %[[R]])
  %p = neuroshard.run_lookup @e(%device, %r)
  // CHECK: neuroshard.exchange_results @e(%{{.*}}, %[[R]], %[[P]]) -> tensor<?x8xf32>, tensor<?x8xf32>
  %x:2 = neuroshard.exchange_results @e(%device, %r, %p) -> tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK: neuroshard.exchange_joined_results @joined(%{{.*}}, %[[R]], %[[P]]) -> tensor<?x16xf16>
  %j = neuroshard.exchange_joined_results @joined(%device, %r, %p) -> tensor<?x16xf16>
  // CHECK: neuroshard.release %{{.*}}, %[[P]] : !neuroshard.partials
  neuroshard.release %device, %p : !neuroshard.partials
  // CHECK: %[[G:.*]] = neuroshard.exchange_gradients @e(%{{.*}}, %[[R]]) gradients(%{{.*}}, %{{.*}}) : tensor<?x8xf32>, tensor<?x8xf32>
  %d = neuroshard.exchange_gradients @e(%device, %r) gradients(%g, %g) : tensor<?x8xf32>, tensor<?x8xf32>
  // CHECK: neuroshard.run_weights_gradient @e(%{{.*}}, %{{.*}}, %[[R]], %[[G]]) : !ids -> tensor<?xf32>
  %w = neuroshard.run_weights_gradient @e(%device, %ids, %r, %d) : !ids -> tensor<?xf32>
  // CHECK: neuroshard.run_update [@e](%{{.*}}) routed(%[[R]]) gradients(%[[G]]) learning_rate %{{.*}} step %{{.*}}
  neuroshard.run_update [@e](%device) routed(%r) gradients(%d) learning_rate %lr step %step
  // CHECK: neuroshard.release %{{.*}}, %[[R]] : !neuroshard.routed
  neuroshard.release %device, %r : !neuroshard.routed
  return %w : tensor<?xf32>
}
