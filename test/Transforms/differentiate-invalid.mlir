// What neuroshard-differentiate refuses, and why.
// RUN: neuroshard-opt-raw %s --neuroshard-differentiate --split-input-file --verify-diagnostics

// expected-error@below {{the module has no function '@embeddings_start'; run neuroshard-outline first}}
module {}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
neuroshard.table private @t : 10 x 4 x f32
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
// expected-error@below {{no looked-up table has an optimizer, so there is nothing to train; give a table an optimizer, or compile without training}}
func.func @embeddings_wait(%p: !pending) -> tensor<?x4xf32> {
  %ids = neuroshard.resume %p : !pending -> !ids
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// expected-error@below {{the name '@embeddings_update' is needed for the update, but taken}}
func.func private @embeddings_update()

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
neuroshard.table private @t : 10 x 4 x f32
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
// expected-error@below {{results of '@embeddings_wait' must be lookups of its ids; run neuroshard-differentiate right after neuroshard-outline, before neuroshard-shard}}
func.func @embeddings_wait(%p: !pending, %other: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %ids = neuroshard.resume %p : !pending -> !ids
  return %other : tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
// expected-error@below {{'@embeddings_start' must have exactly one 'neuroshard.suspend'}}
func.func @embeddings_start(%p: !pending) -> !pending {
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) {
  %ids = neuroshard.resume %p : !pending -> !ids
  return
}

// -----

// expected-error@below {{'@embeddings_start' must have a body of one block, as neuroshard-outline makes it}}
func.func private @embeddings_start()
func.func private @embeddings_wait()
