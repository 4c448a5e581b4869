// What neuroshard-verify-planned accepts and refuses.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-planned --split-input-file --verify-diagnostics

// Sharded, replicated and never looked up: all are covered. Memory is not
// looked at.
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200", memory = 1000>]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 1000 x 8 x f32
  neuroshard.table private @u : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t0" of @t rows [0, 1000) cols [0, 4) on [0]
    neuroshard.shard "t1" of @t rows [0, 1000) cols [4, 8) on [1]
    neuroshard.shard "u" of @u rows [0, 10) cols [0, 4) on [0, 1]
  }
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}

// -----

// expected-error@below {{the module has no plan; run neuroshard-plan or write one by hand}}
module {}

// -----

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
  // expected-note@below {{the table is defined here}}
  neuroshard.table private @t : 100 x 8 x f32
  // expected-error@below {{must cover every table, but shards of '@t' cover 0 of its 800 elements; neuroshard-plan completes a plan}}
  neuroshard.plan @plan on @cluster semantics exact {
  }
}

// -----

// The planner's own verifier knows about pins.
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 100 x 8 x f32
  // expected-error@below {{table 't': a pin keeps it off device 0, where it has a shard}}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
    neuroshard.pin @t on [1]
  }
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 10) cols [0, 4) on [0]
}
func.func @f(%ids: !ids) {
  // expected-error@below {{does not belong in a module of the planned level}}
  %b = neuroshard.scatter_batch %ids : !ids -> !neuroshard.dist<!ids, batch>
  return
}
