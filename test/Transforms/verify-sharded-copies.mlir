// Copies of a shard exchange the sums of their gradients.
// RUN: neuroshard-opt %s --neuroshard-verify-sharded --split-input-file --verify-diagnostics

// One copy is updated by its own gradients alone.
!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!pending = !neuroshard.pending<!b, !o>
!context = !neuroshard.context<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">]
  levels [#neuroshard.level<"node", groups = [3], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 40) cols [0, 8) on [0, 1]
  neuroshard.shard "t1" of @t rows [40, 100) cols [0, 8) on [2]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %c : tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h = neuroshard.scatter_batch %g : tensor<?x8xf32> -> !rb
  %d = neuroshard.distribute_gradients %b gradients(%h) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  // expected-error@below {{updates table 't', which needs two phases: its shards have copies}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d : !ro) learning_rate %lr step %step
  return
}

// -----

// Copies do not exchange their sums.
!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!pending = !neuroshard.pending<!b, !o>
!context = !neuroshard.context<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">]
  levels [#neuroshard.level<"node", groups = [3], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 40) cols [0, 8) on [0, 1]
  neuroshard.shard "t1" of @t rows [40, 100) cols [0, 8) on [2]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %c : tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h = neuroshard.scatter_batch %g : tensor<?x8xf32> -> !rb
  %d = neuroshard.distribute_gradients %b gradients(%h) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  // expected-error@below {{rows must go through one 'exchange_copies' and one 'apply_rows', with the same tables}}
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d : !ro) -> !rows
  neuroshard.apply_rows %rows [@t] learning_rate %lr step %step : !rows
  return
}

// -----

// They exchange norms instead.
!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!pending = !neuroshard.pending<!b, !o>
!context = !neuroshard.context<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">]
  levels [#neuroshard.level<"node", groups = [3], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 40) cols [0, 8) on [0, 1]
  neuroshard.shard "t1" of @t rows [40, 100) cols [0, 8) on [2]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %c : tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h = neuroshard.scatter_batch %g : tensor<?x8xf32> -> !rb
  %d = neuroshard.distribute_gradients %b gradients(%h) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  // expected-error@below {{rows must go through one 'exchange_copies' and one 'apply_rows', with the same tables}}
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  return
}
