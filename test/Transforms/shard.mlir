// Lookups and updates become ops on values that a plan distributes.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-shard | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard | FileCheck %s --check-prefixes=CHECK,TRAIN

!ids = !neuroshard.jagged<["a", "b", "c"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
// Split by columns, with a row-wise optimizer.
neuroshard.table private @columns : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @rows : 100 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @small : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "columns_0" of @columns rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "columns_1" of @columns rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "rows_0" of @rows rows [0, 50) cols [0, 4) on [0]
  neuroshard.shard "rows_1" of @rows rows [50, 100) cols [0, 4) on [1]
  neuroshard.shard "small" of @small rows [0, 10) cols [0, 4) on [0, 1]
}

func.func @forward(%ids: !ids) -> (tensor<?x8xf16>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @columns[%ids, "a"] : !ids -> tensor<?x8xf16>
  %1 = neuroshard.lookup mean @rows[%ids, "b"] : !ids -> tensor<?x4xf32>
  %2 = neuroshard.lookup sum @small[%ids, "c"] : !ids -> tensor<?x4xf32>
  return %0, %1, %2 : tensor<?x8xf16>, tensor<?x4xf32>, tensor<?x4xf32>
}

// Ids of sharded tables go to their owners; of the replicated one they stay.
// CHECK-LABEL: func.func @embeddings_start(
// CHECK-SAME:    %[[IDS:.*]]: !ids) -> !pending
// CHECK-NEXT:    %[[B:.*]] = neuroshard.scatter_batch %[[IDS]] : !ids -> !batch_ids
// CHECK-NEXT:    %[[O0:.*]] = neuroshard.distribute_ids %[[B]] [#neuroshard.lookup<sum @columns["a"]>] : !batch_ids -> !owner_ids
// CHECK-NEXT:    %[[O1:.*]] = neuroshard.distribute_ids %[[B]] [#neuroshard.lookup<mean @rows["b"]>] : !batch_ids -> !owner_ids
// CHECK-NEXT:    neuroshard.suspend %[[B]], %[[O0]], %[[O1]] : !batch_ids, !owner_ids, !owner_ids -> !pending

// Partial rows travel as f32; the replicated table needs no exchange.
// CHECK-LABEL: func.func @embeddings_wait(
// CHECK-NEXT:    %[[P:.*]]:3 = neuroshard.resume
// CHECK-NEXT:    %[[F0:.*]] = neuroshard.fused_lookup %[[P]]#1 [#neuroshard.lookup<sum @columns["a"]>] : !owner_ids -> !neuroshard.dist<tensor<?x8xf32>, owner>
// CHECK-NEXT:    %[[F1:.*]] = neuroshard.fused_lookup %[[P]]#2 [#neuroshard.lookup<mean @rows["b"]>] : !owner_ids -> !neuroshard.dist<tensor<?x4xf32>, owner>
// CHECK-NEXT:    %[[F2:.*]] = neuroshard.fused_lookup %[[P]]#0 [#neuroshard.lookup<sum @small["c"]>] : !batch_ids -> !neuroshard.dist<tensor<?x4xf32>, batch>
// CHECK-NEXT:    %[[C0:.*]] = neuroshard.combine %[[P]]#0 partials(%[[F0]]) [#neuroshard.lookup<sum @columns["a"]>] : {{.*}} -> !neuroshard.dist<tensor<?x8xf16>, batch>
// CHECK-NEXT:    %[[C1:.*]] = neuroshard.combine %[[P]]#0 partials(%[[F1]]) [#neuroshard.lookup<mean @rows["b"]>] : {{.*}} -> !neuroshard.dist<tensor<?x4xf32>, batch>
// CHECK-NEXT:    %[[R0:.*]] = neuroshard.gather_batch %[[C0]] : {{.*}} -> tensor<?x8xf16>
// CHECK-NEXT:    %[[R1:.*]] = neuroshard.gather_batch %[[C1]] : {{.*}} -> tensor<?x4xf32>
// CHECK-NEXT:    %[[R2:.*]] = neuroshard.gather_batch %[[F2]] : {{.*}} -> tensor<?x4xf32>
// TRAIN-NEXT:    %[[SAVED:.*]] = neuroshard.save %[[P]]#0, %[[P]]#1, %[[P]]#2
// TRAIN-NEXT:    return %[[R0]], %[[R1]], %[[R2]], %[[SAVED]]
// FORWARD-NEXT:  return %[[R0]], %[[R1]], %[[R2]] :

// The replicas get the ids and gradients of all samples. The row-wise optimizer
// adds up the norms of a row's columns before it applies its step.
// TRAIN-LABEL: func.func @embeddings_update(
// TRAIN-SAME:    %{{.*}}: !context, %[[G0:.*]]: tensor<?x8xf16>, %[[G1:.*]]: tensor<?x4xf32>, %[[G2:.*]]: tensor<?x4xf32>, %[[LR:.*]]: f32, %[[STEP:.*]]: i64)
// TRAIN-NEXT:    %[[P:.*]]:3 = neuroshard.restore
// TRAIN-NEXT:    %[[B0:.*]] = neuroshard.scatter_batch %[[G0]]
// TRAIN-NEXT:    %[[B1:.*]] = neuroshard.scatter_batch %[[G1]]
// TRAIN-NEXT:    %[[B2:.*]] = neuroshard.scatter_batch %[[G2]]
// TRAIN-NEXT:    %[[IDS:.*]] = neuroshard.distribute_ids %[[P]]#0 [#neuroshard.lookup<sum @small["c"]>] : !batch_ids -> !replica_ids
// TRAIN-NEXT:    %[[D0:.*]] = neuroshard.distribute_gradients %[[P]]#0 gradients(%[[B0]]) [#neuroshard.lookup<sum @columns["a"]>] : {{.*}} -> !neuroshard.dist<tensor<?x8xf32>, owner>
// TRAIN-NEXT:    %[[D1:.*]] = neuroshard.distribute_gradients %[[P]]#0 gradients(%[[B1]]) [#neuroshard.lookup<mean @rows["b"]>] : {{.*}} -> !neuroshard.dist<tensor<?x4xf32>, owner>
// TRAIN-NEXT:    %[[D2:.*]] = neuroshard.distribute_gradients %[[P]]#0 gradients(%[[B2]]) [#neuroshard.lookup<sum @small["c"]>] : {{.*}} -> !neuroshard.dist<tensor<?x4xf32>, replica>
// TRAIN-NEXT:    neuroshard.fused_update [#neuroshard.lookup<mean @rows["b"]>] ids(%[[P]]#2 : !owner_ids) gradients(%[[D1]] : {{.*}}) learning_rate %[[LR]] step %[[STEP]]
// TRAIN-NEXT:    neuroshard.fused_update [#neuroshard.lookup<sum @small["c"]>] ids(%[[IDS]] : !replica_ids) gradients(%[[D2]] : {{.*}})
// TRAIN-NEXT:    %[[ROWS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @columns["a"]>] ids(%[[P]]#1 : !owner_ids) gradients(%[[D0]] : {{.*}}) -> !neuroshard.dist<!neuroshard.rows, owner>
// TRAIN-NEXT:    %[[NORMED:.*]] = neuroshard.exchange_norms %[[ROWS]] [@columns]
// TRAIN-NEXT:    neuroshard.apply_rows %[[NORMED]] [@columns] learning_rate %[[LR]] step %[[STEP]]
// TRAIN-NEXT:    return
