// SPMD functions on the local batch, and one program for each kind of device.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-shard --neuroshard-fuse --neuroshard-partition | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-fuse --neuroshard-partition | FileCheck %s --check-prefixes=CHECK,TRAIN
// Merging before makes no difference.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-partition | FileCheck %s --check-prefixes=CHECK,TRAIN
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-shard --neuroshard-fuse --neuroshard-partition --remarks-filter=neuroshard-partition --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: remark: {{.*}}"2 distinct programs for 3 devices with 7 slots"

!ids = !neuroshard.jagged<["a", "b"], i64>
!other = !neuroshard.jagged<["q"], i32, weighted>

neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">]
  levels [#neuroshard.level<"node", groups = [3], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @columns : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @rows : 100 x 16 x f16 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @small : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "columns_1" of @columns rows [0, 100) cols [4, 8) on [2]
  neuroshard.shard "columns_0" of @columns rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "rows_0" of @rows rows [0, 50) cols [0, 16) on [0]
  neuroshard.shard "rows_1" of @rows rows [50, 100) cols [0, 16) on [2]
  neuroshard.shard "small" of @small rows [0, 10) cols [0, 4) on [0, 1, 2]
}

// The lookups of each input, in the order of wait's results.
// CHECK:      neuroshard.exchange @exchange0 of !ids on @plan
// CHECK-SAME:   lookups [#neuroshard.lookup<sum @columns["a"]>, #neuroshard.lookup<unpooled @small["b"]>]
// CHECK-SAME:   results [tensor<?x8xf32>, tensor<?x4xf32>]
// CHECK-NEXT: neuroshard.exchange @exchange1 of !ids1 on @plan
// CHECK-SAME:   lookups [#neuroshard.lookup<sum @rows["q"] weighted>, #neuroshard.lookup<mean @rows["q"]>]
// CHECK-SAME:   results [tensor<?x16xf16>, tensor<?x16xf32>]

// Devices 0 and 2 have other shards, but of the same structure and in the same
// order of tables; device 1 has the replicated table only. Optimizers are
// there in training; two_phase too.
// CHECK-NEXT:    neuroshard.device_program @program0 for [0, 2] {
// FORWARD-NEXT:    neuroshard.local_table 0 : 4 x f32 of 8 shards ["columns_0", "columns_1"]{{$}}
// TRAIN-NEXT:      neuroshard.local_table 0 : 4 x f32 of 8 shards ["columns_0", "columns_1"] two_phase {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
// CHECK-NEXT:      neuroshard.local_lookup pooled of 0 in @exchange0 binds [0, 0]
// FORWARD-NEXT:    neuroshard.local_table 1 : 16 x f16 of 16 shards ["rows_0", "rows_1"]{{$}}
// TRAIN-NEXT:      neuroshard.local_table 1 : 16 x f16 of 16 shards ["rows_0", "rows_1"] {optimizer = #neuroshard.optimizer<sgd>}
// CHECK-NEXT:      neuroshard.local_lookup pooled weighted of 1 in @exchange1 binds [0, 0]
// CHECK-NEXT:      neuroshard.local_lookup pooled of 1 in @exchange1 binds [1, 1]
// CHECK-NEXT:      neuroshard.local_table 2 : 4 x f32 of 4 shards ["small", "small"]{{$}}
// CHECK-NEXT:      neuroshard.local_lookup of 2 in @exchange0 binds [1, 1]
// CHECK-NEXT:    }
// CHECK-NEXT:    neuroshard.device_program @program1 for [1] {
// CHECK-NEXT:      neuroshard.local_table 0 : 4 x f32 of 4 shards ["small"]
// CHECK-NEXT:      neuroshard.local_lookup of 0 in @exchange0 binds [1]
// CHECK-NEXT:    }

// The entry hands its device on, and gives back what nobody will update with.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[DEVICE:.*]]: !neuroshard.device, %[[IDS:.*]]: !ids, %[[OTHER:.*]]: !ids1)
// CHECK-NEXT:    %[[PENDING:.*]] = call @embeddings_start(%[[DEVICE]], %[[IDS]], %[[OTHER]])
// CHECK-NEXT:    %[[SENT:.*]] = call @embeddings_lookup(%[[DEVICE]], %[[PENDING]]) : (!neuroshard.device, [[PENDING_TYPE:!pending[0-9]*]]) -> [[SENT_TYPE:!pending[0-9]*]]
// FORWARD-NEXT:  %[[ROWS:.*]]:4 = call @embeddings_wait(%[[DEVICE]], %[[SENT]])
// TRAIN-NEXT:    %[[ROWS:.*]]:5 = call @embeddings_wait(%[[DEVICE]], %[[SENT]])
// TRAIN-NEXT:    %[[CONTEXT:.*]]:3 = neuroshard.restore %[[ROWS]]#4 : !context -> !neuroshard.routed, !neuroshard.routed, !ids1
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[CONTEXT]]#0
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[CONTEXT]]#1
// CHECK-NEXT:    return %[[ROWS]]#0, %[[ROWS]]#1, %[[ROWS]]#2, %[[ROWS]]#3 :
func.func @forward(%ids: !ids, %other: !other)
    -> (tensor<?x8xf32>, tensor<?x16xf16>, tensor<?x4xf32>, tensor<?x16xf32>) {
  %0 = neuroshard.lookup sum @columns[%ids, "a"] : !ids -> tensor<?x8xf32>
  %1 = neuroshard.lookup sum @rows[%other, "q"] weighted : !other -> tensor<?x16xf16>
  %2 = neuroshard.lookup unpooled @small[%ids, "b"] : !ids -> tensor<?x4xf32>
  %3 = neuroshard.lookup mean @rows[%other, "q"] : !other -> tensor<?x16xf32>
  return %0, %1, %2, %3 : tensor<?x8xf32>, tensor<?x16xf16>, tensor<?x4xf32>, tensor<?x16xf32>
}

// CHECK-LABEL: func.func @embeddings_start(
// CHECK-SAME:    %[[DEVICE:.*]]: !neuroshard.device, %[[IDS:.*]]: !ids, %[[OTHER:.*]]: !ids1) -> [[PENDING_TYPE]]
// CHECK-NEXT:    %[[R0:.*]] = neuroshard.route @exchange0(%[[DEVICE]], %[[IDS]]) : !ids
// CHECK-NEXT:    %[[R1:.*]] = neuroshard.route @exchange1(%[[DEVICE]], %[[OTHER]]) : !ids1
// FORWARD-NEXT:  neuroshard.suspend %[[R0]], %[[R1]] :
// The weights need gradients, and for those the number of ids.
// TRAIN-NEXT:    neuroshard.suspend %[[R0]], %[[R1]], %[[OTHER]] :

// CHECK-LABEL: func.func @embeddings_lookup(
// CHECK-SAME:    %[[DEVICE:.*]]: !neuroshard.device, %[[PENDING:.*]]: [[PENDING_TYPE]]) -> [[SENT_TYPE]]
// CHECK-NEXT:    %[[R:.*]]:{{[23]}} = neuroshard.resume %[[PENDING]]
// CHECK-NEXT:    %[[P0:.*]] = neuroshard.run_lookup @exchange0(%[[DEVICE]], %[[R]]#0)
// CHECK-NEXT:    %[[P1:.*]] = neuroshard.run_lookup @exchange1(%[[DEVICE]], %[[R]]#1)
// FORWARD-NEXT:  neuroshard.suspend %[[R]]#0, %[[R]]#1, %[[P0]], %[[P1]] :
// TRAIN-NEXT:    neuroshard.suspend %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[P0]], %[[P1]] :

// CHECK-LABEL: func.func @embeddings_wait(
// CHECK-SAME:    %[[DEVICE:.*]]: !neuroshard.device, %[[SENT:.*]]: [[SENT_TYPE]])
// FORWARD-NEXT:  %[[R:.*]]:4 = neuroshard.resume %[[SENT]]
// TRAIN-NEXT:    %[[R:.*]]:5 = neuroshard.resume %[[SENT]]
// FORWARD-NEXT:  %[[X0:.*]]:2 = neuroshard.exchange_results @exchange0(%[[DEVICE]], %[[R]]#0, %[[R]]#2) -> tensor<?x8xf32>, tensor<?x4xf32>
// TRAIN-NEXT:    %[[X0:.*]]:2 = neuroshard.exchange_results @exchange0(%[[DEVICE]], %[[R]]#0, %[[R]]#3) -> tensor<?x8xf32>, tensor<?x4xf32>
// FORWARD-NEXT:  neuroshard.release %[[DEVICE]], %[[R]]#2 : !neuroshard.partials
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#3 : !neuroshard.partials
// FORWARD-NEXT:  neuroshard.release %[[DEVICE]], %[[R]]#0 : !neuroshard.routed
// FORWARD-NEXT:  %[[X1:.*]]:2 = neuroshard.exchange_results @exchange1(%[[DEVICE]], %[[R]]#1, %[[R]]#3) -> tensor<?x16xf16>, tensor<?x16xf32>
// TRAIN-NEXT:    %[[X1:.*]]:2 = neuroshard.exchange_results @exchange1(%[[DEVICE]], %[[R]]#1, %[[R]]#4) -> tensor<?x16xf16>, tensor<?x16xf32>
// FORWARD-NEXT:  neuroshard.release %[[DEVICE]], %[[R]]#3 : !neuroshard.partials
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#4 : !neuroshard.partials
// FORWARD-NEXT:  neuroshard.release %[[DEVICE]], %[[R]]#1 : !neuroshard.routed
// FORWARD-NEXT:  return %[[X0]]#0, %[[X1]]#0, %[[X0]]#1, %[[X1]]#1 :
// TRAIN-NEXT:    %[[SAVED:.*]] = neuroshard.save %[[R]]#0, %[[R]]#1, %[[R]]#2
// TRAIN-NEXT:    return %[[X0]]#0, %[[X1]]#0, %[[X0]]#1, %[[X1]]#1, %[[SAVED]] :

// TRAIN-LABEL: func.func @embeddings_gradients(
// TRAIN-SAME:    %[[DEVICE:[^:]*]]: !neuroshard.device, %{{[^:]*}}: !context, %[[G0:[^:]*]]: tensor<?x8xf32>, %[[G1:[^:]*]]: tensor<?x16xf16>, %[[G2:[^:]*]]: tensor<?x4xf32>, %[[G3:[^:]*]]: tensor<?x16xf32>) -> (tensor<?xf32>, [[FLIGHT:!pending[0-9]*]])
// TRAIN-NEXT:    %[[R:.*]]:3 = neuroshard.restore
// TRAIN-NEXT:    %[[D0:.*]] = neuroshard.exchange_gradients @exchange0(%[[DEVICE]], %[[R]]#0) gradients(%[[G0]], %[[G2]])
// TRAIN-NEXT:    %[[D1:.*]] = neuroshard.exchange_gradients @exchange1(%[[DEVICE]], %[[R]]#1) gradients(%[[G1]], %[[G3]])
// TRAIN-NEXT:    %[[W:.*]] = neuroshard.run_weights_gradient @exchange1(%[[DEVICE]], %[[R]]#2, %[[R]]#1, %[[D1]])
// TRAIN-NEXT:    %[[SENT:.*]] = neuroshard.suspend %[[R]]#0, %[[R]]#1, %[[D0]], %[[D1]] :
// TRAIN-NEXT:    return %[[W]], %[[SENT]]

// TRAIN-LABEL: func.func @embeddings_update(
// TRAIN-SAME:    %[[DEVICE:[^:]*]]: !neuroshard.device, %[[SENT:[^:]*]]: [[FLIGHT]], %[[LR:[^:]*]]: f32, %[[STEP:[^:]*]]: i64) {
// TRAIN-NEXT:    %[[R:.*]]:4 = neuroshard.resume %[[SENT]]
// TRAIN-NEXT:    neuroshard.run_update [@exchange0, @exchange1](%[[DEVICE]]) routed(%[[R]]#0, %[[R]]#1) gradients(%[[R]]#2, %[[R]]#3) learning_rate %[[LR]] step %[[STEP]]
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#3
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#2
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#1
// TRAIN-NEXT:    neuroshard.release %[[DEVICE]], %[[R]]#0
// TRAIN-NEXT:    return{{$}}
