// What neuroshard-partition refuses, and why.
// RUN: neuroshard-opt-raw %s --neuroshard-outline --neuroshard-shard --neuroshard-partition --split-input-file --verify-diagnostics

// A loss over the batch would be one over the local batch.
!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
func.func private @loss(tensor<?x8xf32>) -> tensor<f32>
// expected-error@below {{result #0 of '@forward' has type 'tensor<f32>', which has no dimension for the samples; each of 2 devices computes its part of the batch, so results must have a dynamic first dimension}}
func.func @forward(%ids: !ids) -> tensor<f32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
  %1 = call @loss(%0) : (tensor<?x8xf32>) -> tensor<f32>
  return %1 : tensor<f32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
// expected-error@below {{result #0 of '@embeddings_wait' has type 'tensor<64x8xf32>', with a static number of samples; each of 2 devices computes its part of the batch, so results must have a dynamic first dimension}}
func.func @forward(%ids: !ids) -> tensor<64x8xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
// expected-error@below {{'@forward' has lookups and is called; inline it first: --inline}}
func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
func.func @outer(%ids: !ids) -> tensor<?x8xf32> {
  // expected-note@below {{it is called here}}
  %0 = call @forward(%ids) : (!ids) -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
}
func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
  return %0 : tensor<?x8xf32>
}
// expected-error@below {{'@embeddings_start' gets a device argument, so its only uses may be calls in functions}}
module attributes {test.callback = @embeddings_start} {}
