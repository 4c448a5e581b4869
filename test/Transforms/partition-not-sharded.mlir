// Functions that neuroshard-shard did not write are refused by neuroshard-partition.
// RUN: neuroshard-opt-raw %s --neuroshard-partition --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
neuroshard.table private @t : 10 x 4 x f32
// expected-error@below {{'@embeddings_start' names no plan by 'neuroshard.plan'; run neuroshard-shard first}}
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> tensor<?x4xf32> {
  %ids = neuroshard.resume %p : !pending -> !ids
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!batch_ids = !neuroshard.dist<!ids, batch>
!pending = !neuroshard.pending<!batch_ids>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 10) cols [0, 4) on [0]
}
func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
  %b = neuroshard.scatter_batch %ids : !ids -> !batch_ids
  %p = neuroshard.suspend %b : !batch_ids -> !pending
  return %p : !pending
}
// expected-error@below {{'@embeddings_wait' must return combined lookups of its ids; neuroshard-partition needs functions as neuroshard-shard makes them}}
func.func @embeddings_wait(%p: !pending) -> !batch_ids {
  %ids = neuroshard.resume %p : !pending -> !batch_ids
  return %ids : !batch_ids
}
