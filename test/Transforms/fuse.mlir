// One op remains for all lookups of the same ids, and for all tables at owners.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-fuse | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>
!other = !neuroshard.jagged<["q"], i32, weighted>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t0 : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @t1 : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @t2 : 100 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @r0 : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @r1 : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<adam>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0_0" of @t0 rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t0_1" of @t0 rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "t1_0" of @t1 rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1_1" of @t1 rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "t2" of @t2 rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "r0" of @r0 rows [0, 10) cols [0, 4) on [0, 1]
  neuroshard.shard "r1" of @r1 rows [0, 10) cols [0, 4) on [0, 1]
}

func.func @forward(%ids: !ids, %other: !other)
    -> (tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t0[%ids, "a"] : !ids -> tensor<?x8xf32>
  %1 = neuroshard.lookup sum @t2[%other, "q"] weighted : !other -> tensor<?x4xf32>
  %2 = neuroshard.lookup sum @t1[%ids, "b"] : !ids -> tensor<?x8xf32>
  %3 = neuroshard.lookup sum @r0[%other, "q"] weighted : !other -> tensor<?x4xf32>
  %4 = neuroshard.lookup sum @r1[%other, "q"] : !other -> tensor<?x4xf32>
  %5 = neuroshard.lookup sum @t2[%other, "q"] : !other -> tensor<?x4xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// The types of all three functions follow.
// CHECK-DAG: !pending = !neuroshard.pending<!batch_ids, !batch_ids1, !owner_ids, !owner_ids1>
// CHECK-DAG: !context = !neuroshard.context<!batch_ids, !batch_ids1, !owner_ids, !owner_ids1>

// CHECK-LABEL: func.func @embeddings_start(
// CHECK:         %[[B0:.*]] = neuroshard.scatter_batch
// CHECK-NEXT:    %[[B1:.*]] = neuroshard.scatter_batch
// CHECK-NEXT:    %[[O1:.*]] = neuroshard.distribute_ids %[[B0]] [#neuroshard.lookup<sum @t0["a"]>, #neuroshard.lookup<sum @t1["b"]>]
// CHECK-NEXT:    %[[O2:.*]] = neuroshard.distribute_ids %[[B1]] [#neuroshard.lookup<sum @t2["q"] weighted>, #neuroshard.lookup<sum @t2["q"]>]
// CHECK-NEXT:    neuroshard.suspend %[[B0]], %[[B1]], %[[O1]], %[[O2]]

// CHECK-LABEL: func.func @embeddings_wait(
// CHECK:         %[[P:.*]]:4 = neuroshard.resume
// CHECK-NEXT:    %[[F0:.*]]:2 = neuroshard.fused_lookup %[[P]]#2 [#neuroshard.lookup<sum @t0["a"]>, #neuroshard.lookup<sum @t1["b"]>]
// CHECK-NEXT:    %[[F1:.*]]:2 = neuroshard.fused_lookup %[[P]]#1 [#neuroshard.lookup<sum @r0["q"] weighted>, #neuroshard.lookup<sum @r1["q"]>]
// CHECK-NEXT:    %[[F2:.*]]:2 = neuroshard.fused_lookup %[[P]]#3 [#neuroshard.lookup<sum @t2["q"] weighted>, #neuroshard.lookup<sum @t2["q"]>]
// CHECK-NEXT:    %[[C0:.*]]:2 = neuroshard.combine %[[P]]#0 partials(%[[F0]]#0, %[[F0]]#1)
// CHECK-NEXT:    %[[C1:.*]]:2 = neuroshard.combine %[[P]]#1 partials(%[[F2]]#0, %[[F2]]#1)
// CHECK-NEXT:    neuroshard.gather_batch %[[C0]]#0
// CHECK-NEXT:    neuroshard.gather_batch %[[C1]]#0
// CHECK-NEXT:    neuroshard.gather_batch %[[C0]]#1
// CHECK-NEXT:    neuroshard.gather_batch %[[F1]]#0
// CHECK-NEXT:    neuroshard.gather_batch %[[F1]]#1
// CHECK-NEXT:    neuroshard.gather_batch %[[C1]]#1

// Owners and replicas are updated apart. The weights' gradient is the sum of
// what owners and batch contribute.
// CHECK-LABEL: func.func @embeddings_update(
// CHECK:         %[[P:.*]]:4 = neuroshard.restore
// CHECK:         %[[R:.*]] = neuroshard.distribute_ids %[[P]]#1 [#neuroshard.lookup<sum @r0["q"] weighted>, #neuroshard.lookup<sum @r1["q"]>] : !batch_ids1 -> !replica_ids
// CHECK-NEXT:    %[[D0:.*]]:2 = neuroshard.distribute_gradients %[[P]]#0 {{.*}} [#neuroshard.lookup<sum @t0["a"]>, #neuroshard.lookup<sum @t1["b"]>]
// CHECK-NEXT:    %[[D1:.*]]:2 = neuroshard.distribute_gradients %[[P]]#1 {{.*}} [#neuroshard.lookup<sum @r0["q"] weighted>, #neuroshard.lookup<sum @r1["q"]>]
// CHECK-NEXT:    %[[D2:.*]]:2 = neuroshard.distribute_gradients %[[P]]#1 {{.*}} [#neuroshard.lookup<sum @t2["q"] weighted>, #neuroshard.lookup<sum @t2["q"]>]
// CHECK-NEXT:    %[[W0:.*]] = neuroshard.fused_weights_gradient %[[P]]#3 gradients(%[[D2]]#0)
// CHECK-NEXT:    %[[W1:.*]] = neuroshard.fused_weights_gradient %[[P]]#1 gradients(%{{.*}})
// CHECK-NEXT:    %[[W:.*]] = neuroshard.combine_weights_gradient %[[P]]#1 partials(%[[W0]], %[[W1]])
// CHECK-NEXT:    neuroshard.gather_batch %[[W]]
// CHECK-NEXT:    neuroshard.fused_update [#neuroshard.lookup<sum @t2["q"] weighted>, #neuroshard.lookup<sum @t2["q"]>] ids(%[[P]]#3, %[[P]]#3
// CHECK-NEXT:    neuroshard.fused_update [#neuroshard.lookup<sum @r0["q"] weighted>, #neuroshard.lookup<sum @r1["q"]>] ids(%[[R]], %[[R]]
// CHECK-NEXT:    %[[ROWS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @t0["a"]>, #neuroshard.lookup<sum @t1["b"]>] ids(%[[P]]#2, %[[P]]#2 : !owner_ids, !owner_ids) gradients(%[[D0]]#0, %[[D0]]#1
// CHECK-NEXT:    %[[NORMED:.*]] = neuroshard.exchange_norms %[[ROWS]] [@t0, @t1]
// CHECK-NEXT:    neuroshard.apply_rows %[[NORMED]] [@t0, @t1]
// CHECK-NEXT:    return
