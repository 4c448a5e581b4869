// Start, wait and update that do not hand on what the next one takes are refused.
// RUN: neuroshard-opt-raw %s --neuroshard-fuse --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
// expected-error@below {{'@embeddings_wait' must take the last result of '@embeddings_start'}}
func.func @embeddings_wait(%p: !neuroshard.pending<!ids, !ids>) {
  %ids:2 = neuroshard.resume %p : !neuroshard.pending<!ids, !ids> -> !ids, !ids
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
!context = !neuroshard.context<!ids>
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> !context {
  %ids = neuroshard.resume %p : !pending -> !ids
  %c = neuroshard.save %ids : !ids -> !context
  return %c : !context
}
// expected-error@below {{'@embeddings_update' must take the last result of '@embeddings_wait'}}
func.func @embeddings_update(%c: !neuroshard.context, %lr: f32, %step: i64) {
  neuroshard.restore %c : !neuroshard.context
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
!context = !neuroshard.context<!ids>
neuroshard.table @t : 10 x 4 x f32
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> (tensor<?x4xf32>, !context) {
  %ids = neuroshard.resume %p : !pending -> !ids
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %c = neuroshard.save %ids : !ids -> !context
  return %0, %c : tensor<?x4xf32>, !context
}
// expected-error@below {{'@embeddings_update' must take a context, one gradient for each of 1 lookups, learning rate and step, got: 3 arguments}}
func.func @embeddings_update(%c: !context, %lr: f32, %step: i64) {
  %ids = neuroshard.restore %c : !context -> !ids
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
!context = !neuroshard.context<!ids>
neuroshard.table @t : 10 x 4 x f32
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> (tensor<?x4xf32>, !context) {
  %ids = neuroshard.resume %p : !pending -> !ids
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %c = neuroshard.save %ids : !ids -> !context
  return %0, %c : tensor<?x4xf32>, !context
}
// expected-error@below {{gradient #0 of '@embeddings_update' must have the type of its lookup's result, 'tensor<?x4xf32>', got: 'tensor<?x4xf16>'}}
func.func @embeddings_update(%c: !context, %g: tensor<?x4xf16>, %lr: f32, %step: i64) {
  %ids = neuroshard.restore %c : !context -> !ids
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
!pending = !neuroshard.pending<!ids>
!context = !neuroshard.context<!ids>
func.func @embeddings_start(%ids: !ids) -> !pending {
  %p = neuroshard.suspend %ids : !ids -> !pending
  return %p : !pending
}
func.func @embeddings_wait(%p: !pending) -> !context {
  %ids = neuroshard.resume %p : !pending -> !ids
  %c = neuroshard.save %ids : !ids -> !context
  return %c : !context
}
// expected-error@below {{the last arguments of '@embeddings_update' must be a learning rate, f32, and a step, i64}}
func.func @embeddings_update(%c: !context, %step: i64, %lr: f32) {
  %ids = neuroshard.restore %c : !context -> !ids
  return
}
