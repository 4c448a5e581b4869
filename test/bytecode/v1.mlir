// Bytecode that version 1 wrote keeps its meaning: v1.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v1.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: module @logical
// CHECK: module @outlined
// CHECK: module @sharded
// CHECK: module @partitioned
// CHECK: module @packing

!logical_ids = !neuroshard.jagged<["user_id", "item_id"], i64>
!logical_ids1 = !neuroshard.jagged<["query"], i32, weighted>
!outlined_ids = !neuroshard.jagged<["user_id", "item_id"], i64>
!outlined_ids1 = !neuroshard.jagged<["query"], i32, weighted>
!outlined_context = !neuroshard.context<!outlined_ids, !outlined_ids1>
!outlined_pending = !neuroshard.pending<!outlined_ids, !outlined_ids1>
!sharded_ids = !neuroshard.jagged<["user_id", "item_id"], i64>
!sharded_ids1 = !neuroshard.jagged<["query"], i32, weighted>
!sharded_batch_ids = !neuroshard.dist<!sharded_ids, batch>
!sharded_batch_ids1 = !neuroshard.dist<!sharded_ids1, batch>
!sharded_owner_ids = !neuroshard.dist<!sharded_ids, owner>
!sharded_owner_ids1 = !neuroshard.dist<!sharded_ids1, owner>
!sharded_replica_ids = !neuroshard.dist<!sharded_ids, replica>
!sharded_context = !neuroshard.context<!sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1>
!sharded_pending = !neuroshard.pending<!sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1>
!partitioned_ids = !neuroshard.jagged<["user_id", "item_id"], i64>
!partitioned_ids1 = !neuroshard.jagged<["query"], i32, weighted>
!partitioned_context = !neuroshard.context<!neuroshard.routed, !neuroshard.routed, !partitioned_ids1>
!partitioned_pending = !neuroshard.pending<!neuroshard.routed, !neuroshard.routed, !partitioned_ids1>

module @logical attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">] levels [#neuroshard.level<"node", groups = [3], bandwidth = 4.500000e+02, latency = 5.000000e+00>] host_memory [1000000000]
  neuroshard.table private @user : 1000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 500 x 16 x f16 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.table private @small : 10 x 8 x f32 {access = #neuroshard.access<batch = 64, reuse = [5.000000e-01, 5.000000e-01, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], row_mass = [1.000000e-01, 5.000000e-01]>, hashed, optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
  neuroshard.table private @frozen : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact provenance {algorithm = "by hand"} {
    neuroshard.shard "user_c0" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "user_c1" of @user rows [0, 1000) cols [64, 128) on [1]
    neuroshard.shard "item_r0" of @item rows [0, 250) cols [0, 16) on [0]
    neuroshard.shard "item_r1" of @item rows [250, 500) cols [0, 16) on [1]
    neuroshard.shard "small" of @small rows [0, 10) cols [0, 8) on [0, 1, 2]
    neuroshard.pin @frozen on [2]
    neuroshard.shard "frozen" of @frozen rows [0, 10) cols [0, 4) on [2]
  }
  func.func @forward(%arg0: tensor<?x13xf32>, %arg1: !logical_ids, %arg2: !logical_ids1) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>) {
    %0 = neuroshard.lookup sum @user[%arg1, "user_id"] {stats = #neuroshard.feature<mean = 3.000000e+00, p99 = 1.000000e+01>} : !logical_ids -> tensor<?x128xf32>
    %1 = neuroshard.lookup mean @item[%arg1, "item_id"] padding_idx 0 : !logical_ids -> tensor<?x16xf16>
    %2 = neuroshard.lookup sum @item[%arg2, "query"] weighted : !logical_ids1 -> tensor<?x16xf32>
    %3 = neuroshard.lookup unpooled @small[%arg1, "item_id"] : !logical_ids -> tensor<?x8xf32>
    %4 = neuroshard.lookup sum @frozen[%arg2, "query"] : !logical_ids1 -> tensor<?x4xf32>
    %5 = neuroshard.lookup sum @frozen[%arg2, "query"] : !logical_ids1 -> tensor<?x4xf32>
    %6 = arith.addf %0, %0 : tensor<?x128xf32>
    return %6, %1, %2, %3, %4 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  }
}
module @outlined attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">] levels [#neuroshard.level<"node", groups = [3], bandwidth = 4.500000e+02, latency = 5.000000e+00>] host_memory [1000000000]
  neuroshard.table private @user : 1000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 500 x 16 x f16 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.table private @small : 10 x 8 x f32 {access = #neuroshard.access<batch = 64, reuse = [5.000000e-01, 5.000000e-01, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], row_mass = [1.000000e-01, 5.000000e-01]>, hashed, optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
  neuroshard.table private @frozen : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact provenance {algorithm = "by hand"} {
    neuroshard.shard "user_c0" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "user_c1" of @user rows [0, 1000) cols [64, 128) on [1]
    neuroshard.shard "item_r0" of @item rows [0, 250) cols [0, 16) on [0]
    neuroshard.shard "item_r1" of @item rows [250, 500) cols [0, 16) on [1]
    neuroshard.shard "small" of @small rows [0, 10) cols [0, 8) on [0, 1, 2]
    neuroshard.pin @frozen on [2]
    neuroshard.shard "frozen" of @frozen rows [0, 10) cols [0, 4) on [2]
  }
  func.func @forward(%arg0: tensor<?x13xf32>, %arg1: !outlined_ids, %arg2: !outlined_ids1) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>) {
    %0 = call @embeddings_start(%arg1, %arg2) : (!outlined_ids, !outlined_ids1) -> !outlined_pending
    %1:6 = call @embeddings_wait(%0) : (!outlined_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !outlined_context)
    neuroshard.discard %1#5 : !outlined_context
    %2 = arith.addf %1#0, %1#0 : tensor<?x128xf32>
    return %2, %1#1, %1#2, %1#3, %1#4 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  }
  func.func @embeddings_start(%arg0: !outlined_ids, %arg1: !outlined_ids1) -> !outlined_pending {
    %0 = neuroshard.suspend %arg0, %arg1 : !outlined_ids, !outlined_ids1 -> !outlined_pending
    return %0 : !outlined_pending
  }
  func.func @embeddings_wait(%arg0: !outlined_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !outlined_context) {
    %0:2 = neuroshard.resume %arg0 : !outlined_pending -> !outlined_ids, !outlined_ids1
    %1 = neuroshard.lookup sum @user[%0#0, "user_id"] {stats = #neuroshard.feature<mean = 3.000000e+00, p99 = 1.000000e+01>} : !outlined_ids -> tensor<?x128xf32>
    %2 = neuroshard.lookup mean @item[%0#0, "item_id"] padding_idx 0 : !outlined_ids -> tensor<?x16xf16>
    %3 = neuroshard.lookup sum @item[%0#1, "query"] weighted : !outlined_ids1 -> tensor<?x16xf32>
    %4 = neuroshard.lookup unpooled @small[%0#0, "item_id"] : !outlined_ids -> tensor<?x8xf32>
    %5 = neuroshard.lookup sum @frozen[%0#1, "query"] : !outlined_ids1 -> tensor<?x4xf32>
    %6 = neuroshard.save %0#0, %0#1 : !outlined_ids, !outlined_ids1 -> !outlined_context
    return %1, %2, %3, %4, %5, %6 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !outlined_context
  }
  func.func @embeddings_update(%arg0: !outlined_context, %arg1: tensor<?x128xf32>, %arg2: tensor<?x16xf16>, %arg3: tensor<?x16xf32>, %arg4: tensor<?x8xf32>, %arg5: tensor<?x4xf32>, %arg6: f32, %arg7: i64) -> tensor<?xf32> {
    %0:2 = neuroshard.restore %arg0 : !outlined_context -> !outlined_ids, !outlined_ids1
    %1 = neuroshard.weights_gradient %0#1 [#neuroshard.lookup<sum @item["query"] weighted>] gradients(%arg3) : !outlined_ids1, tensor<?x16xf32> -> tensor<?xf32>
    neuroshard.update @user [#neuroshard.lookup<sum @user["user_id"]>] ids(%0#0 : !outlined_ids) gradients(%arg1 : tensor<?x128xf32>) learning_rate %arg6 step %arg7
    neuroshard.update @item [#neuroshard.lookup<mean @item["item_id"] padding_idx = 0>, #neuroshard.lookup<sum @item["query"] weighted>] ids(%0#0, %0#1 : !outlined_ids, !outlined_ids1) gradients(%arg2, %arg3 : tensor<?x16xf16>, tensor<?x16xf32>) learning_rate %arg6 step %arg7
    neuroshard.update @small [#neuroshard.lookup<unpooled @small["item_id"]>] ids(%0#0 : !outlined_ids) gradients(%arg4 : tensor<?x8xf32>) learning_rate %arg6 step %arg7
    return %1 : tensor<?xf32>
  }
}
module @sharded attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">] levels [#neuroshard.level<"node", groups = [3], bandwidth = 4.500000e+02, latency = 5.000000e+00>] host_memory [1000000000]
  neuroshard.table private @user : 1000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 500 x 16 x f16 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.table private @small : 10 x 8 x f32 {access = #neuroshard.access<batch = 64, reuse = [5.000000e-01, 5.000000e-01, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], row_mass = [1.000000e-01, 5.000000e-01]>, hashed, optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
  neuroshard.table private @frozen : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact provenance {algorithm = "by hand"} {
    neuroshard.shard "user_c0" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "user_c1" of @user rows [0, 1000) cols [64, 128) on [1]
    neuroshard.shard "item_r0" of @item rows [0, 250) cols [0, 16) on [0]
    neuroshard.shard "item_r1" of @item rows [250, 500) cols [0, 16) on [1]
    neuroshard.shard "small" of @small rows [0, 10) cols [0, 8) on [0, 1, 2]
    neuroshard.pin @frozen on [2]
    neuroshard.shard "frozen" of @frozen rows [0, 10) cols [0, 4) on [2]
  }
  func.func @forward(%arg0: tensor<?x13xf32>, %arg1: !sharded_ids, %arg2: !sharded_ids1) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>) {
    %0 = call @embeddings_start(%arg1, %arg2) : (!sharded_ids, !sharded_ids1) -> !sharded_pending
    %1:6 = call @embeddings_wait(%0) : (!sharded_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !sharded_context)
    neuroshard.discard %1#5 : !sharded_context
    %2 = arith.addf %1#0, %1#0 : tensor<?x128xf32>
    return %2, %1#1, %1#2, %1#3, %1#4 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  }
  func.func @embeddings_start(%arg0: !sharded_ids, %arg1: !sharded_ids1) -> !sharded_pending attributes {neuroshard.plan = @plan} {
    %0 = neuroshard.scatter_batch %arg0 : !sharded_ids -> !sharded_batch_ids
    %1 = neuroshard.scatter_batch %arg1 : !sharded_ids1 -> !sharded_batch_ids1
    %2 = neuroshard.distribute_ids %0 [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>] : !sharded_batch_ids -> !sharded_owner_ids
    %3 = neuroshard.distribute_ids %1 [#neuroshard.lookup<sum @item["query"] weighted>, #neuroshard.lookup<sum @frozen["query"]>] : !sharded_batch_ids1 -> !sharded_owner_ids1
    %4 = neuroshard.suspend %0, %1, %2, %3 : !sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1 -> !sharded_pending
    return %4 : !sharded_pending
  }
  func.func @embeddings_wait(%arg0: !sharded_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !sharded_context) {
    %0:4 = neuroshard.resume %arg0 : !sharded_pending -> !sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1
    %1:2 = neuroshard.fused_lookup %0#2 [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>] : !sharded_owner_ids -> !neuroshard.dist<tensor<?x128xf32>, owner>, !neuroshard.dist<tensor<?x16xf32>, owner>
    %2 = neuroshard.fused_lookup %0#0 [#neuroshard.lookup<unpooled @small["item_id"]>] : !sharded_batch_ids -> !neuroshard.dist<tensor<?x8xf32>, batch>
    %3:2 = neuroshard.fused_lookup %0#3 [#neuroshard.lookup<sum @item["query"] weighted>, #neuroshard.lookup<sum @frozen["query"]>] : !sharded_owner_ids1 -> !neuroshard.dist<tensor<?x16xf32>, owner>, !neuroshard.dist<tensor<?x4xf32>, owner>
    %4:2 = neuroshard.combine %0#0 partials(%1#0, %1#1) [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>] : !sharded_batch_ids, !neuroshard.dist<tensor<?x128xf32>, owner>, !neuroshard.dist<tensor<?x16xf32>, owner> -> !neuroshard.dist<tensor<?x128xf32>, batch>, !neuroshard.dist<tensor<?x16xf16>, batch>
    %5:2 = neuroshard.combine %0#1 partials(%3#0, %3#1) [#neuroshard.lookup<sum @item["query"] weighted>, #neuroshard.lookup<sum @frozen["query"]>] : !sharded_batch_ids1, !neuroshard.dist<tensor<?x16xf32>, owner>, !neuroshard.dist<tensor<?x4xf32>, owner> -> !neuroshard.dist<tensor<?x16xf32>, batch>, !neuroshard.dist<tensor<?x4xf32>, batch>
    %6 = neuroshard.gather_batch %4#0 : !neuroshard.dist<tensor<?x128xf32>, batch> -> tensor<?x128xf32>
    %7 = neuroshard.gather_batch %4#1 : !neuroshard.dist<tensor<?x16xf16>, batch> -> tensor<?x16xf16>
    %8 = neuroshard.gather_batch %5#0 : !neuroshard.dist<tensor<?x16xf32>, batch> -> tensor<?x16xf32>
    %9 = neuroshard.gather_batch %2 : !neuroshard.dist<tensor<?x8xf32>, batch> -> tensor<?x8xf32>
    %10 = neuroshard.gather_batch %5#1 : !neuroshard.dist<tensor<?x4xf32>, batch> -> tensor<?x4xf32>
    %11 = neuroshard.save %0#0, %0#1, %0#2, %0#3 : !sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1 -> !sharded_context
    return %6, %7, %8, %9, %10, %11 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !sharded_context
  }
  func.func @embeddings_update(%arg0: !sharded_context, %arg1: tensor<?x128xf32>, %arg2: tensor<?x16xf16>, %arg3: tensor<?x16xf32>, %arg4: tensor<?x8xf32>, %arg5: tensor<?x4xf32>, %arg6: f32, %arg7: i64) -> tensor<?xf32> {
    %0:4 = neuroshard.restore %arg0 : !sharded_context -> !sharded_batch_ids, !sharded_batch_ids1, !sharded_owner_ids, !sharded_owner_ids1
    %1 = neuroshard.scatter_batch %arg1 : tensor<?x128xf32> -> !neuroshard.dist<tensor<?x128xf32>, batch>
    %2 = neuroshard.scatter_batch %arg2 : tensor<?x16xf16> -> !neuroshard.dist<tensor<?x16xf16>, batch>
    %3 = neuroshard.scatter_batch %arg3 : tensor<?x16xf32> -> !neuroshard.dist<tensor<?x16xf32>, batch>
    %4 = neuroshard.scatter_batch %arg4 : tensor<?x8xf32> -> !neuroshard.dist<tensor<?x8xf32>, batch>
    %5 = neuroshard.distribute_ids %0#0 [#neuroshard.lookup<unpooled @small["item_id"]>] : !sharded_batch_ids -> !sharded_replica_ids
    %6:2 = neuroshard.distribute_gradients %0#0 gradients(%1, %2) [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>] : !sharded_batch_ids, !neuroshard.dist<tensor<?x128xf32>, batch>, !neuroshard.dist<tensor<?x16xf16>, batch> -> !neuroshard.dist<tensor<?x128xf32>, owner>, !neuroshard.dist<tensor<?x16xf32>, owner>
    %7 = neuroshard.distribute_gradients %0#1 gradients(%3) [#neuroshard.lookup<sum @item["query"] weighted>] : !sharded_batch_ids1, !neuroshard.dist<tensor<?x16xf32>, batch> -> !neuroshard.dist<tensor<?x16xf32>, owner>
    %8 = neuroshard.distribute_gradients %0#0 gradients(%4) [#neuroshard.lookup<unpooled @small["item_id"]>] : !sharded_batch_ids, !neuroshard.dist<tensor<?x8xf32>, batch> -> !neuroshard.dist<tensor<?x8xf32>, replica>
    %9 = neuroshard.fused_weights_gradient %0#3 gradients(%7) [#neuroshard.lookup<sum @item["query"] weighted>] : !sharded_owner_ids1, !neuroshard.dist<tensor<?x16xf32>, owner> -> !neuroshard.dist<tensor<?xf32>, owner>
    %10 = neuroshard.combine_weights_gradient %0#1 partials(%9) [#neuroshard.lookup<sum @item["query"] weighted>] : !sharded_batch_ids1, !neuroshard.dist<tensor<?xf32>, owner> -> !neuroshard.dist<tensor<?xf32>, batch>
    %11 = neuroshard.gather_batch %10 : !neuroshard.dist<tensor<?xf32>, batch> -> tensor<?xf32>
    neuroshard.fused_update [#neuroshard.lookup<mean @item["item_id"] padding_idx = 0>, #neuroshard.lookup<sum @item["query"] weighted>] ids(%0#2, %0#3 : !sharded_owner_ids, !sharded_owner_ids1) gradients(%6#1, %7 : !neuroshard.dist<tensor<?x16xf32>, owner>, !neuroshard.dist<tensor<?x16xf32>, owner>) learning_rate %arg6 step %arg7
    neuroshard.fused_update [#neuroshard.lookup<unpooled @small["item_id"]>] ids(%5 : !sharded_replica_ids) gradients(%8 : !neuroshard.dist<tensor<?x8xf32>, replica>) learning_rate %arg6 step %arg7
    %12 = neuroshard.reduce_rows [#neuroshard.lookup<sum @user["user_id"]>] ids(%0#2 : !sharded_owner_ids) gradients(%6#0 : !neuroshard.dist<tensor<?x128xf32>, owner>) -> !neuroshard.dist<!neuroshard.rows, owner>
    %13 = neuroshard.exchange_norms %12 [@user] : !neuroshard.dist<!neuroshard.rows, owner>
    neuroshard.apply_rows %13 [@user] learning_rate %arg6 step %arg7 : !neuroshard.dist<!neuroshard.rows, owner>
    return %11 : tensor<?xf32>
  }
}
module @partitioned attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">] levels [#neuroshard.level<"node", groups = [3], bandwidth = 4.500000e+02, latency = 5.000000e+00>] host_memory [1000000000]
  neuroshard.table private @user : 1000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 500 x 16 x f16 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.table private @small : 10 x 8 x f32 {access = #neuroshard.access<batch = 64, reuse = [5.000000e-01, 5.000000e-01, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00, 0.000000e+00], row_mass = [1.000000e-01, 5.000000e-01]>, hashed, optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
  neuroshard.table private @frozen : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact provenance {algorithm = "by hand"} {
    neuroshard.shard "user_c0" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "user_c1" of @user rows [0, 1000) cols [64, 128) on [1]
    neuroshard.shard "item_r0" of @item rows [0, 250) cols [0, 16) on [0]
    neuroshard.shard "item_r1" of @item rows [250, 500) cols [0, 16) on [1]
    neuroshard.shard "small" of @small rows [0, 10) cols [0, 8) on [0, 1, 2]
    neuroshard.pin @frozen on [2]
    neuroshard.shard "frozen" of @frozen rows [0, 10) cols [0, 4) on [2]
  }
  neuroshard.exchange @exchange0 of !partitioned_ids on @plan lookups [#neuroshard.lookup<sum @user["user_id"]>, #neuroshard.lookup<mean @item["item_id"] padding_idx = 0>, #neuroshard.lookup<unpooled @small["item_id"]>] results [tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x8xf32>]
  neuroshard.exchange @exchange1 of !partitioned_ids1 on @plan lookups [#neuroshard.lookup<sum @item["query"] weighted>, #neuroshard.lookup<sum @frozen["query"]>] results [tensor<?x16xf32>, tensor<?x4xf32>]
  neuroshard.device_program @program0 for [0, 1] {
    neuroshard.local_table 0 : 64 x f32 of 128 shards ["user_c0", "user_c1"] two_phase {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
    neuroshard.local_lookup pooled of 0 in @exchange0 binds [0, 0]
    neuroshard.local_table 1 : 16 x f16 of 16 shards ["item_r0", "item_r1"] {optimizer = #neuroshard.optimizer<sgd>}
    neuroshard.local_lookup pooled of 1 in @exchange0 binds [1, 1]
    neuroshard.local_lookup pooled weighted of 1 in @exchange1 binds [0, 0]
    neuroshard.local_table 2 : 8 x f32 of 8 shards ["small", "small"] {optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
    neuroshard.local_lookup of 2 in @exchange0 binds [2, 2]
  }
  neuroshard.device_program @program1 for [2] {
    neuroshard.local_table 0 : 8 x f32 of 8 shards ["small"] {optimizer = #neuroshard.optimizer<adam, beta1 = 8.000000e-01>}
    neuroshard.local_lookup of 0 in @exchange0 binds [2]
    neuroshard.local_table 1 : 4 x f32 of 4 shards ["frozen"]
    neuroshard.local_lookup pooled of 1 in @exchange1 binds [1]
  }
  func.func @forward(%arg0: !neuroshard.device, %arg1: tensor<?x13xf32>, %arg2: !partitioned_ids, %arg3: !partitioned_ids1) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>) {
    %0 = call @embeddings_start(%arg0, %arg2, %arg3) : (!neuroshard.device, !partitioned_ids, !partitioned_ids1) -> !partitioned_pending
    %1:6 = call @embeddings_wait(%arg0, %0) : (!neuroshard.device, !partitioned_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !partitioned_context)
    %2:3 = neuroshard.restore %1#5 : !partitioned_context -> !neuroshard.routed, !neuroshard.routed, !partitioned_ids1
    neuroshard.release %arg0, %2#0 : !neuroshard.routed
    neuroshard.release %arg0, %2#1 : !neuroshard.routed
    %3 = arith.addf %1#0, %1#0 : tensor<?x128xf32>
    return %3, %1#1, %1#2, %1#3, %1#4 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>
  }
  func.func @embeddings_start(%arg0: !neuroshard.device, %arg1: !partitioned_ids, %arg2: !partitioned_ids1) -> !partitioned_pending {
    %0 = neuroshard.route @exchange0(%arg0, %arg1) : !partitioned_ids
    %1 = neuroshard.route @exchange1(%arg0, %arg2) : !partitioned_ids1
    %2 = neuroshard.suspend %0, %1, %arg2 : !neuroshard.routed, !neuroshard.routed, !partitioned_ids1 -> !partitioned_pending
    return %2 : !partitioned_pending
  }
  func.func @embeddings_wait(%arg0: !neuroshard.device, %arg1: !partitioned_pending) -> (tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !partitioned_context) {
    %0:3 = neuroshard.resume %arg1 : !partitioned_pending -> !neuroshard.routed, !neuroshard.routed, !partitioned_ids1
    %1 = neuroshard.run_lookup @exchange0(%arg0, %0#0)
    %2:3 = neuroshard.exchange_results @exchange0(%arg0, %0#0, %1) -> tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x8xf32>
    neuroshard.release %arg0, %1 : !neuroshard.partials
    %3 = neuroshard.run_lookup @exchange1(%arg0, %0#1)
    %4:2 = neuroshard.exchange_results @exchange1(%arg0, %0#1, %3) -> tensor<?x16xf32>, tensor<?x4xf32>
    neuroshard.release %arg0, %3 : !neuroshard.partials
    %5 = neuroshard.save %0#0, %0#1, %0#2 : !neuroshard.routed, !neuroshard.routed, !partitioned_ids1 -> !partitioned_context
    return %2#0, %2#1, %4#0, %2#2, %4#1, %5 : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x16xf32>, tensor<?x8xf32>, tensor<?x4xf32>, !partitioned_context
  }
  func.func @embeddings_update(%arg0: !neuroshard.device, %arg1: !partitioned_context, %arg2: tensor<?x128xf32>, %arg3: tensor<?x16xf16>, %arg4: tensor<?x16xf32>, %arg5: tensor<?x8xf32>, %arg6: tensor<?x4xf32>, %arg7: f32, %arg8: i64) -> tensor<?xf32> {
    %0:3 = neuroshard.restore %arg1 : !partitioned_context -> !neuroshard.routed, !neuroshard.routed, !partitioned_ids1
    %1 = neuroshard.exchange_gradients @exchange0(%arg0, %0#0) gradients(%arg2, %arg3, %arg5) : tensor<?x128xf32>, tensor<?x16xf16>, tensor<?x8xf32>
    %2 = neuroshard.exchange_gradients @exchange1(%arg0, %0#1) gradients(%arg4, %arg6) : tensor<?x16xf32>, tensor<?x4xf32>
    %3 = neuroshard.run_weights_gradient @exchange1(%arg0, %0#2, %0#1, %2) : !partitioned_ids1 -> tensor<?xf32>
    neuroshard.run_update [@exchange0, @exchange1](%arg0) routed(%0#0, %0#1) gradients(%1, %2) learning_rate %arg7 step %arg8
    neuroshard.release %arg0, %1 : !neuroshard.partials
    neuroshard.release %arg0, %0#0 : !neuroshard.routed
    neuroshard.release %arg0, %2 : !neuroshard.partials
    neuroshard.release %arg0, %0#1 : !neuroshard.routed
    return %3 : tensor<?xf32>
  }
}
module @packing {
  func.func @f(%a: tensor<?xi64>, %o: tensor<?xi64>) -> (index, index) {
    %p = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%o : tensor<?xi64>) : !neuroshard.jagged<["a"], i64>
    %k = neuroshard.from_keyed %a, %o : tensor<?xi64>, tensor<?xi64> -> !neuroshard.jagged<["a"], i64>
    %u:2 = neuroshard.unpack %k["a"] : !neuroshard.jagged<["a"], i64> -> tensor<?xi64>, tensor<?xi64>
    %b = neuroshard.batch_size %p : !neuroshard.jagged<["a"], i64>
    %n = neuroshard.num_ids %p["a"] : !neuroshard.jagged<["a"], i64>
    return %b, %n : index, index
  }
}
