// With check-memory a plan that does not fit is refused.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-planned=check-memory=true --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200", memory = 1000>]
    levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 1000 x 8 x f32
  // expected-error@below {{device 0: needs 5.0 GiB}}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 1000) cols [0, 8) on [0]
  }
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}
