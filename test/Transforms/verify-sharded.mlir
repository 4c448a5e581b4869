// What neuroshard-verify-sharded refuses: start and wait that do not fit the plan
// or each other.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-sharded --split-input-file --verify-diagnostics

// A module that has not been sharded.
// expected-error@below {{the module has no function '@embeddings_start'; run neuroshard-outline first}}
module {}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
func.func @f(%ids: !ids) -> tensor<?x4xf32> {
  // expected-error@below {{does not belong in a module of the sharded level}}
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// A sharded table is looked up where no rows of it are.
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
  // expected-note@below {{the plan places it here}}
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
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  // expected-error@below {{looks up the sharded table '@t' at the batch; its rows are at their owners}}
  %r = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// A replicated table is looked up at owners that it does not have.
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
  // expected-note@below {{the plan places it here}}
  neuroshard.shard "r" of @r rows [0, 100) cols [0, 8) on [0, 1]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  // expected-error@below {{looks up the replicated table '@r' at the owners; its rows are on every device}}
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @r["b"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @r["b"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// The owners get no ids of the feature that is looked up.
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
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  // expected-error@below {{needs the ids of its lookups distributed exactly once; #neuroshard.lookup<sum @t["b"]> on ids #0 is there 0 times}}
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["b"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["b"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Ids go to owners that nobody looks up.
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
  // expected-error@below {{needs its ids looked up at the owners exactly once; #neuroshard.lookup<sum @t["b"]> on ids #0 is there 0 times}}
  %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<sum @t["b"]>] : !b -> !o
  %p = neuroshard.suspend %b, %o : !b, !o -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Rows do not come back.
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
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  // expected-error@below {{needs its rows combined exactly once; #neuroshard.lookup<sum @t["a"]> on ids #0 is there 0 times}}
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  %r = neuroshard.fused_lookup %b [#neuroshard.lookup<sum @r["b"]>] : !b -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// Rows come back twice.
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
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %b, %o = neuroshard.resume %p : !pending -> !b, !o
  // expected-error@below {{needs its rows combined exactly once; #neuroshard.lookup<sum @t["a"]> on ids #0 is there 2 times}}
  %f = neuroshard.fused_lookup %o [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro
  // expected-note@below {{one of them is here}}
  %r = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %r2 = neuroshard.combine %b partials(%f) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !rb
  %0 = neuroshard.gather_batch %r : !rb -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

// The step names no plan.
!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!pending = !neuroshard.pending<!b>
// expected-error@below {{'@embeddings_start' names no plan by 'neuroshard.plan'; run neuroshard-shard first}}
func.func @embeddings_start(%ids: !ids) -> !pending {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %p = neuroshard.suspend %b : !b -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> !b {
  %b = neuroshard.resume %p : !pending -> !b
  return %b : !b
}

// -----

// The step names what is not a plan of the module.
!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!pending = !neuroshard.pending<!b>
neuroshard.table @other : 10 x 4 x f32
// expected-error@below {{'@embeddings_start' is distributed by the plan '@other', which the module does not have}}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @other} {
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %p = neuroshard.suspend %b : !b -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> !b {
  %b = neuroshard.resume %p : !pending -> !b
  return %b : !b
}
