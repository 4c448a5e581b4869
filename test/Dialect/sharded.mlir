// The ops on distributed values print as they parse.
// RUN: neuroshard-dialect-opt %s | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!r = !neuroshard.dist<!ids, replica>
!rows_b = !neuroshard.dist<tensor<?x8xf16>, batch>
!rows_o = !neuroshard.dist<tensor<?x8xf32>, owner>
!rows_r = !neuroshard.dist<tensor<?x8xf32>, replica>
!weights_o = !neuroshard.dist<tensor<?xf32>, owner>
!weights_b = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}

// CHECK-LABEL: func.func @forward
func.func @forward(%ids: !ids) -> tensor<?x8xf16> {
  // CHECK: %[[B:.*]] = neuroshard.scatter_batch %{{.*}} : !ids -> !batch_ids
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  // CHECK: %[[O:.*]] = neuroshard.distribute_ids %[[B]] [#neuroshard.lookup<sum @t["a"]>] : !batch_ids -> !owner_ids
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  // CHECK: %[[P:.*]] = neuroshard.fused_lookup %[[O]] [#neuroshard.lookup<sum @t["a"]>] : !owner_ids -> !neuroshard.dist<tensor<?x8xf32>, owner>
  %p = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !rows_o
  // CHECK: neuroshard.combine %[[B]] partials(%[[P]]) [#neuroshard.lookup<sum @t["a"]>] : !batch_ids, !neuroshard.dist<tensor<?x8xf32>, owner> -> !neuroshard.dist<tensor<?x8xf16>, batch>
  %c = neuroshard.combine %b partials(%p) [#neuroshard.lookup<sum @t["a"]>] : !b, !rows_o -> !rows_b
  // CHECK: neuroshard.gather_batch %{{.*}} : !neuroshard.dist<tensor<?x8xf16>, batch> -> tensor<?x8xf16>
  %g = neuroshard.gather_batch %c : !rows_b -> tensor<?x8xf16>
  return %g : tensor<?x8xf16>
}

// CHECK-LABEL: func.func @backward
func.func @backward(%b: !b, %o: !o, %g: !rows_b, %lr: f32, %step: i64) -> !weights_b {
  // CHECK: neuroshard.distribute_ids %{{.*}} : !batch_ids -> !replica_ids
  %r = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !r
  // CHECK: neuroshard.distribute_gradients %{{.*}} gradients(%{{.*}}) [#neuroshard.lookup<sum @t["a"]>] : !batch_ids, !neuroshard.dist<tensor<?x8xf16>, batch> -> !neuroshard.dist<tensor<?x8xf32>, owner>
  %d = neuroshard.distribute_gradients %b gradients(%g) [#neuroshard.lookup<sum @t["a"]>] : !b, !rows_b -> !rows_o
  %dr = neuroshard.distribute_gradients %b gradients(%g) [#neuroshard.lookup<sum @t["a"]>] : !b, !rows_b -> !rows_r
  // CHECK: neuroshard.fused_weights_gradient %{{.*}} gradients(%{{.*}}) [#neuroshard.lookup<sum @t["a"] weighted>] : !owner_ids, {{.*}} -> !neuroshard.dist<tensor<?xf32>, owner>
  %w = neuroshard.fused_weights_gradient %o gradients(%d) [#neuroshard.lookup<sum @t["a"] weighted>] : !o, !rows_o -> !weights_o
  // CHECK: neuroshard.combine_weights_gradient %{{.*}} partials(%{{.*}}, %{{.*}}) [#neuroshard.lookup<sum @t["a"] weighted>] : !batch_ids, {{.*}} -> !neuroshard.dist<tensor<?xf32>, batch>
  %wb = neuroshard.combine_weights_gradient %b partials(%w, %w) [#neuroshard.lookup<sum @t["a"] weighted>] : !b, !weights_o, !weights_o -> !weights_b
  // CHECK: neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<sum @t["a"]>] ids(%{{.*}}, %{{.*}} : !replica_ids, !replica_ids) gradients(%{{.*}}, %{{.*}} : !neuroshard.dist<tensor<?x8xf32>, replica>, !neuroshard.dist<tensor<?x8xf32>, replica>) learning_rate %{{.*}} step %{{.*}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<sum @t["a"]>]
    ids(%r, %r : !r, !r) gradients(%dr, %dr : !rows_r, !rows_r) learning_rate %lr step %step
  // CHECK: %[[ROWS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%{{.*}} : !owner_ids) gradients(%{{.*}} : {{.*}}) -> !neuroshard.dist<!neuroshard.rows, owner>
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d : !rows_o) -> !rows
  // CHECK: %[[SUMMED:.*]] = neuroshard.exchange_copies %[[ROWS]] [@t] : !neuroshard.dist<!neuroshard.rows, owner>
  %summed = neuroshard.exchange_copies %rows [@t] : !rows
  // CHECK: %[[NORMED:.*]] = neuroshard.exchange_norms %[[SUMMED]] [@t] : !neuroshard.dist<!neuroshard.rows, owner>
  %normed = neuroshard.exchange_norms %summed [@t] : !rows
  // CHECK: neuroshard.apply_rows %[[NORMED]] [@t] learning_rate %{{.*}} step %{{.*}} : !neuroshard.dist<!neuroshard.rows, owner>
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  return %wb : !weights_b
}
