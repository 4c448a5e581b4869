// What exchanges, device programs and steps refuse.
// RUN: neuroshard-dialect-opt-raw %s --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
// expected-error@below {{has 1 lookups but 0 results}}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results []

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
// expected-error@below {{reads feature "x", which its ids do not have}}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["x"]>] results [tensor<?x4xf32>]

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
// expected-error@below {{'other' is not a plan}}
neuroshard.exchange @e of !ids on @other lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
// expected-note@below {{the table is defined here}}
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
// expected-error@below {{rows of table 't' have 4 columns, got: 'tensor<?x5xf32>'}}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x5xf32>]

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
// expected-error@below {{must be for at least one device}}
neuroshard.device_program @p for [] {
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
// expected-error@below {{devices must be distinct and not negative, got: 1}}
neuroshard.device_program @p for [1, 1] {
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
// expected-error@below {{devices must be distinct and not negative, got: -1}}
neuroshard.device_program @p for [-1] {
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{slots must be numbered from 0 in order, got: 1}}
  neuroshard.local_table 1 : 4 x f32 of 4 shards ["s", "s"]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{is not allowed in a device program, which holds local tables and lookups only}}
  func.func private @f()
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{slot 0 is not declared before}}
  neuroshard.local_lookup pooled of 0 in @e binds [0, 0]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["s", "s"]
  // expected-error@below {{slot -1 is not declared before}}
  neuroshard.local_lookup pooled of -1 in @e binds [0, 0]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{element type must be f32, f16, bf16 or a '!neuroshard.quantized', got: 'i8'}}
  neuroshard.local_table 0 : 4 x i8 of 4 shards ["s", "s"]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{dim must be in [1, 4], got: 5}}
  neuroshard.local_table 0 : 5 x f32 of 4 shards ["s", "s"]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  // expected-error@below {{must bind something for each of the program's 2 devices, got: 1}}
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["s"]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["s", "s"]
  // expected-error@below {{must bind something for each of the program's 2 devices, got: 1}}
  neuroshard.local_lookup pooled of 0 in @e binds [0]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["s", "s"]
  // expected-error@below {{binds lookup 1, the exchange has 1}}
  neuroshard.local_lookup pooled of 0 in @e binds [0, 1]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @p for [0, 1] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["s", "s"]
  // expected-error@below {{'x' is not an exchange}}
  neuroshard.local_lookup pooled of 0 in @x binds [0, 0]
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %a: !neuroshard.jagged<["b"], i64>) {
  // expected-error@below {{takes}}
  %0 = neuroshard.route @e(%d, %a) : !neuroshard.jagged<["b"], i64>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %a: !ids) {
  // expected-error@below {{'x' is not an exchange}}
  %0 = neuroshard.route @x(%d, %a) : !ids
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed) {
  // expected-error@below {{'x' is not an exchange}}
  %0 = neuroshard.run_lookup @x(%d, %r)
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials) {
  // expected-error@below {{has 2 results, the exchange has 1}}
  %0:2 = neuroshard.exchange_results @e(%d, %r, %p) -> tensor<?x4xf32>, tensor<?x4xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials) {
  // expected-error@below {{results must have the exchange's types, got 'tensor<?x4xf16>' for 'tensor<?x4xf32>'}}
  %0 = neuroshard.exchange_results @e(%d, %r, %p) -> tensor<?x4xf16>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<mean @t["a"]>]
  results [tensor<?x4xf32>, tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials) {
  // expected-error@below {{must have the columns of all lookups, 'tensor<?x8xf32>', got: 'tensor<?x4xf32>'}}
  %0 = neuroshard.exchange_joined_results @e(%d, %r, %p) -> tensor<?x4xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<mean @t["a"]>]
  results [tensor<?x4xf32>, tensor<?x4xf16>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials) {
  // expected-error@below {{needs an exchange of pooled lookups with results of one element type and number of rows}}
  %0 = neuroshard.exchange_joined_results @e(%d, %r, %p) -> tensor<?x8xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<unpooled @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials) {
  // expected-error@below {{needs an exchange of pooled lookups}}
  %0 = neuroshard.exchange_joined_results @e(%d, %r, %p) -> tensor<?x4xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %g: tensor<?x5xf32>) {
  // expected-error@below {{gradients must have the exchange's types, got 'tensor<?x5xf32>' for 'tensor<?x4xf32>'}}
  %0 = neuroshard.exchange_gradients @e(%d, %r) gradients(%g) : tensor<?x5xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials, %a: !neuroshard.jagged<["b"], i64>) {
  // expected-error@below {{takes}}
  %0 = neuroshard.run_weights_gradient @e(%d, %a, %r, %p) : !neuroshard.jagged<["b"], i64> -> tensor<?xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials, %lr: f32, %step: i64) {
  // expected-error@below {{has 2 exchanges but 1 routed ids}}
  neuroshard.run_update [@e, @e](%d) routed(%r) gradients(%p) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
}
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @f(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials, %lr: f32, %step: i64) {
  // expected-error@below {{'x' is not an exchange}}
  neuroshard.run_update [@x](%d) routed(%r) gradients(%p) learning_rate %lr step %step
  return
}
