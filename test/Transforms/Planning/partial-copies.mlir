// A search plans around copies of whole tables on all devices; a plan of all tables may have others.
// RUN: neuroshard-opt %s --neuroshard-plan --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["t", "u"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "CPU">]
    levels [#neuroshard.level<"node", groups = [3], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @t : 1000 x 16 x f32
  neuroshard.table private @u : 1000 x 16 x f32
  neuroshard.plan @p on @cluster semantics exact {
    // expected-error @below {{the plan does not have all of every table, and a search plans around copies of whole tables on all 3 devices only; shard 'hot' is 100 x 16 of the 1000 x 16 of '@t' on 2 of them: write shards for all tables, or one device for this one}}
    neuroshard.shard "hot" of @t rows [0, 100) cols [0, 16) on [0, 1]
    neuroshard.shard "cold" of @t rows [100, 1000) cols [0, 16) on [2]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
    %t = neuroshard.lookup sum @t[%ids, "t"] : !ids -> tensor<?x16xf32>
    %u = neuroshard.lookup sum @u[%ids, "u"] : !ids -> tensor<?x16xf32>
    return %t, %u : tensor<?x16xf32>, tensor<?x16xf32>
  }
}

// -----

!ids = !neuroshard.jagged<["t", "u"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "CPU">]
    levels [#neuroshard.level<"node", groups = [3], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @t : 1000 x 16 x f32
  neuroshard.table private @u : 1000 x 16 x f32
  neuroshard.plan @p on @cluster semantics exact {
    neuroshard.shard "hot" of @t rows [0, 100) cols [0, 16) on [0, 1]
    neuroshard.shard "cold" of @t rows [100, 1000) cols [0, 16) on [2]
    neuroshard.shard "u" of @u rows [0, 1000) cols [0, 16) on [2]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
    %t = neuroshard.lookup sum @t[%ids, "t"] : !ids -> tensor<?x16xf32>
    %u = neuroshard.lookup sum @u[%ids, "u"] : !ids -> tensor<?x16xf32>
    return %t, %u : tensor<?x16xf32>, tensor<?x16xf32>
  }
}
