// The reference is lowered from logical IR only.

// RUN: neuroshard-opt-raw %s --neuroshard-lower-reference --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "CPU">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 8.0, latency = 20.0>]
neuroshard.table @t : 10 x 3 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "s" of @t rows [0, 10) cols [0, 3) on [0]
}
func.func @f(%ids: !ids) -> !neuroshard.dist<!ids, batch> {
  // expected-error @+1 {{is not logical IR: the reference is lowered before 'neuroshard-shard'}}
  %b = neuroshard.scatter_batch %ids : !ids -> !neuroshard.dist<!ids, batch>
  return %b : !neuroshard.dist<!ids, batch>
}
