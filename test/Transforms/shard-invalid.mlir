// What neuroshard-shard refuses, and why.
// RUN: neuroshard-opt-raw %s --neuroshard-shard=plan=plan --split-input-file --verify-diagnostics

// expected-error@below {{the module has no plan '@plan'}}
module {}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
// expected-note@below {{the table is defined here}}
neuroshard.table private @t : 100 x 8 x f32
// expected-error@below {{must cover every table, but shards of '@t' cover 400 of its 800 elements; neuroshard-plan completes a plan}}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 50) cols [0, 8) on [0]
}
!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> tensor<?x8xf32> {
  %ids = neuroshard.resume %p : !pending -> !ids
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
// expected-error@below {{results of '@embeddings_wait' must be lookups of its ids; neuroshard-shard runs once, after neuroshard-outline}}
func.func @embeddings_wait(%p: !pending, %x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %ids = neuroshard.resume %p : !pending -> !ids
  return %x : tensor<?x8xf32>
}
