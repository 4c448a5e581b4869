// What neuroshard-verify-sharded refuses of an update.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-sharded --split-input-file --verify-diagnostics

// As it should be.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  return
}

// -----

// One table is forgotten.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  // expected-error@below {{needs its gradients in an update exactly once; #neuroshard.lookup<sum @r["b"]> on ids #0 is there 0 times}}
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  return
}

// -----

// One table is updated twice.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  // expected-error@below {{needs its gradients in an update exactly once; #neuroshard.lookup<sum @r["b"]> on ids #0 is there 2 times}}
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  // expected-note@below {{one of them is here}}
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  return
}

// -----

// The norms of the columns are not added up.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  // expected-error@below {{updates table 't', which needs two phases: its row-wise optimizer is exact and its columns are split}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) learning_rate %lr step %step
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  return
}

// -----

// Phases of different tables.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  // expected-error@below {{rows must go through one 'exchange_norms' and one 'apply_rows', with the same tables}}
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@r] learning_rate %lr step %step : !rows
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  return
}

// -----

// A replicated table is updated on one device only.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @r : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  %rows = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%d0 : !ro) -> !rows
  %normed = neuroshard.exchange_norms %rows [@t] : !rows
  neuroshard.apply_rows %normed [@t] learning_rate %lr step %step : !rows
  %d2 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !ro
  // expected-error@below {{updates the replicated table 'r' at its owners}}
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%o : !o) gradients(%d2 : !ro) learning_rate %lr step %step
  return
}

// -----

// A frozen table is updated.
!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x8xf32>, owner>
!rb = !neuroshard.dist<tensor<?x8xf32>, batch>
!pending = !neuroshard.pending<!b, !o>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
!context = !neuroshard.context<!b, !o>
!rep = !neuroshard.dist<!ids, replica>
!rr = !neuroshard.dist<tensor<?x8xf32>, replica>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
func.func @embeddings_wait(%p: !pending) -> (tensor<?x8xf32>, tensor<?x8xf32>, !context) {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %s = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  %1 = neuroshard.gather_batch %s : !rb -> tensor<?x8xf32>
  %c = neuroshard.save %b, %o : !b, !o -> !context
  return %0, %1, %c : tensor<?x8xf32>, tensor<?x8xf32>, !context
}
func.func @embeddings_update(%c: !context, %g0: tensor<?x8xf32>, %g1: tensor<?x8xf32>, %lr: f32, %step: i64) {
  %b, %o = neuroshard.restore %c : !context -> !b, !o
  %h0 = neuroshard.scatter_batch %g0 : tensor<?x8xf32> -> !rb
  %h1 = neuroshard.scatter_batch %g1 : tensor<?x8xf32> -> !rb
  %i = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rep
  %d0 = neuroshard.distribute_gradients %b gradients(%h0) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !ro
  %d1 = neuroshard.distribute_gradients %b gradients(%h1) [#neuroshard.lookup<sum @r["b"]>] : !b, !rb -> !rr
  // expected-error@below {{updates table 'r', which has no optimizer}}
  neuroshard.fused_update [#neuroshard.lookup<sum @r["b"]>] ids(%i : !rep) gradients(%d1 : !rr) learning_rate %lr step %step
  return
}
