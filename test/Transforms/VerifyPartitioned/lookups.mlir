// What neuroshard-verify-partitioned refuses: lookups and functions that do not fit the programs.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-partitioned --split-input-file --verify-diagnostics

// A lookup of the table is missing.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  // expected-error@below {{has 0 lookups, the exchanges have 1 of its table 't'}}
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
func.func @embeddings_start(%device: !neuroshard.device, %ids: !ids) -> !pending {
  %r = neuroshard.route @e(%device, %ids) : !ids
  %p = neuroshard.suspend %r : !neuroshard.routed -> !pending
  return %p : !pending
}
func.func @embeddings_lookup(%device: !neuroshard.device, %p: !pending) -> !looked_up {
  %r = neuroshard.resume %p : !pending -> !neuroshard.routed
  %l = neuroshard.run_lookup @e(%device, %r)
  %q = neuroshard.suspend %r, %l : !neuroshard.routed, !neuroshard.partials -> !looked_up
  return %q : !looked_up
}
func.func @embeddings_wait(%device: !neuroshard.device, %p: !looked_up) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %r, %l = neuroshard.resume %p : !looked_up -> !neuroshard.routed, !neuroshard.partials
  %0:2 = neuroshard.exchange_results @e(%device, %r, %l) -> tensor<?x8xf32>, tensor<?x4xf32>
  neuroshard.release %device, %l : !neuroshard.partials
  neuroshard.release %device, %r : !neuroshard.routed
  return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// A lookup of the table is there twice.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  // expected-note@below {{the first is here}}
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  // expected-error@below {{binds lookup 0 of its exchange to its slot a second time}}
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
func.func @embeddings_start(%device: !neuroshard.device, %ids: !ids) -> !pending {
  %r = neuroshard.route @e(%device, %ids) : !ids
  %p = neuroshard.suspend %r : !neuroshard.routed -> !pending
  return %p : !pending
}
func.func @embeddings_lookup(%device: !neuroshard.device, %p: !pending) -> !looked_up {
  %r = neuroshard.resume %p : !pending -> !neuroshard.routed
  %l = neuroshard.run_lookup @e(%device, %r)
  %q = neuroshard.suspend %r, %l : !neuroshard.routed, !neuroshard.partials -> !looked_up
  return %q : !looked_up
}
func.func @embeddings_wait(%device: !neuroshard.device, %p: !looked_up) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %r, %l = neuroshard.resume %p : !looked_up -> !neuroshard.routed, !neuroshard.partials
  %0:2 = neuroshard.exchange_results @e(%device, %r, %l) -> tensor<?x8xf32>, tensor<?x4xf32>
  neuroshard.release %device, %l : !neuroshard.partials
  neuroshard.release %device, %r : !neuroshard.routed
  return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// The lookup of another table is bound.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
// expected-note@below {{the exchange is here}}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  // expected-error@below {{on a slot of table @t differs in table, pooling or weights from the lookup #neuroshard.lookup<unpooled @r["b"]> that it binds}}
  neuroshard.local_lookup pooled of 0 in @e binds [1, 0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
func.func @embeddings_start(%device: !neuroshard.device, %ids: !ids) -> !pending {
  %r = neuroshard.route @e(%device, %ids) : !ids
  %p = neuroshard.suspend %r : !neuroshard.routed -> !pending
  return %p : !pending
}
func.func @embeddings_lookup(%device: !neuroshard.device, %p: !pending) -> !looked_up {
  %r = neuroshard.resume %p : !pending -> !neuroshard.routed
  %l = neuroshard.run_lookup @e(%device, %r)
  %q = neuroshard.suspend %r, %l : !neuroshard.routed, !neuroshard.partials -> !looked_up
  return %q : !looked_up
}
func.func @embeddings_wait(%device: !neuroshard.device, %p: !looked_up) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %r, %l = neuroshard.resume %p : !looked_up -> !neuroshard.routed, !neuroshard.partials
  %0:2 = neuroshard.exchange_results @e(%device, %r, %l) -> tensor<?x8xf32>, tensor<?x4xf32>
  neuroshard.release %device, %l : !neuroshard.partials
  neuroshard.release %device, %r : !neuroshard.routed
  return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// Not pooled, but a sum.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
// expected-note@below {{the exchange is here}}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  // expected-error@below {{on a slot of table @t differs in table, pooling or weights from the lookup #neuroshard.lookup<sum @t["a"]> that it binds}}
  neuroshard.local_lookup of 0 in @e binds [0, 0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
func.func @embeddings_start(%device: !neuroshard.device, %ids: !ids) -> !pending {
  %r = neuroshard.route @e(%device, %ids) : !ids
  %p = neuroshard.suspend %r : !neuroshard.routed -> !pending
  return %p : !pending
}
func.func @embeddings_lookup(%device: !neuroshard.device, %p: !pending) -> !looked_up {
  %r = neuroshard.resume %p : !pending -> !neuroshard.routed
  %l = neuroshard.run_lookup @e(%device, %r)
  %q = neuroshard.suspend %r, %l : !neuroshard.routed, !neuroshard.partials -> !looked_up
  return %q : !looked_up
}
func.func @embeddings_wait(%device: !neuroshard.device, %p: !looked_up) -> (tensor<?x8xf32>, tensor<?x4xf32>) {
  %r, %l = neuroshard.resume %p : !looked_up -> !neuroshard.routed, !neuroshard.partials
  %0:2 = neuroshard.exchange_results @e(%device, %r, %l) -> tensor<?x8xf32>, tensor<?x4xf32>
  neuroshard.release %device, %l : !neuroshard.partials
  neuroshard.release %device, %r : !neuroshard.routed
  return %0#0, %0#1 : tensor<?x8xf32>, tensor<?x4xf32>
}

// -----

// No device argument.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
// expected-error@below {{'@embeddings_start' must take the device it runs on first}}
func.func @embeddings_start(%ids: !ids) {
  return
}

// -----

// Not partitioned at all.
// expected-error@below {{the module has no exchange; run neuroshard-partition first}}
module {}

// -----

// A value is still distributed.
!ids = !neuroshard.jagged<["a"], i64>
!batch_ids = !neuroshard.dist<!ids, batch>
func.func @f(%ids: !batch_ids) -> !batch_ids {
  // expected-error@below {{does not belong in a module of the partitioned level}}
  return %ids : !batch_ids
}
