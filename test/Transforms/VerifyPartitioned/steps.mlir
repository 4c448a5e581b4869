// What neuroshard-verify-partitioned refuses: programs that do not fit the plan.
// RUN: neuroshard-opt-raw %s --neuroshard-verify-partitioned --split-input-file --verify-diagnostics

// As it should be.
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

// Two shards are swapped.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  // expected-note@below {{the shard is here}}
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "r" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  // expected-error@below {{binds shard "t1" on device 0, which lies on [1]}}
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t1", "t0"]
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

!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
// A device has no program.
// expected-error@below {{device 1 has no program; every device of the topology needs one, if only to take part in exchanges}}
module {
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
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r"]
  neuroshard.local_lookup of 1 in @e binds [1]
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
}

// -----

// A device has two programs.
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
// expected-note@below {{the first is here}}
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
}
// expected-error@below {{is a second program for device 1}}
neuroshard.device_program @program1 for [1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r"]
  neuroshard.local_lookup of 1 in @e binds [1]
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

// A device that the cluster does not have.
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
// expected-error@below {{is for device 2, the topology has 2}}
neuroshard.device_program @program1 for [2] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r"]
  neuroshard.local_lookup of 1 in @e binds [1]
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

// A shard that the plan does not have.
!ids = !neuroshard.jagged<["a", "b"], i64>
!pending = !neuroshard.pending<!neuroshard.routed>
!looked_up = !neuroshard.pending<!neuroshard.routed, !neuroshard.partials>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t : 100 x 8 x f32
neuroshard.table private @r : 10 x 4 x f32
// expected-note@below {{the plan is here}}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "small" of @r rows [0, 10) cols [0, 4) on [0, 1]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<unpooled @r["b"]>]
  results [tensor<?x8xf32>, tensor<?x4xf32>]
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
  // expected-error@below {{binds shard "smal", which the plan does not have; did you mean 'small'?}}
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["small", "smal"]
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

// A shard is not bound.
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
// expected-error@below {{binds 1 shards on device 0, the plan has 2 there}}
neuroshard.device_program @program0 for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 8 shards ["t0", "t1"]
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
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

// A shard is bound twice.
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
  // expected-note@below {{the first is here}}
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 1 in @e binds [1, 1]
  // expected-error@below {{binds shard "r" on device 0 a second time}}
  neuroshard.local_table 2 : 4 x f32 of 4 shards ["r", "r"]
  neuroshard.local_lookup of 2 in @e binds [1, 1]
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
