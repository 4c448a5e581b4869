// What the ops of lookups on distributed values refuse.
// RUN: neuroshard-dialect-opt-raw %s --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !ids) {
  // expected-error@below {{value must be distributed by batch}}
  %0 = neuroshard.scatter_batch %a : !ids -> !o
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !ids) {
  // expected-error@below {{distributes}}
  %0 = neuroshard.scatter_batch %a : !ids -> !rb
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !ro) {
  // expected-error@below {{value must be distributed by batch}}
  %0 = neuroshard.gather_batch %a : !ro -> tensor<?x4xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b) {
  // expected-error@below {{result must distribute the same ids}}
  %0 = neuroshard.distribute_ids %a [#neuroshard.lookup<sum @t["a"]>] : !b -> !ro
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b) {
  // expected-error@below {{result must be distributed by owner or replica}}
  %0 = neuroshard.distribute_ids %a [#neuroshard.lookup<sum @t["a"]>] : !b -> !b
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !o) {
  // expected-error@below {{ids must be distributed by batch}}
  %0 = neuroshard.distribute_ids %a [#neuroshard.lookup<sum @t["a"]>] : !o -> !o
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b) {
  // expected-error@below {{'u' is not a table}}
  %0 = neuroshard.distribute_ids %a [#neuroshard.lookup<sum @u["a"]>] : !b -> !o
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b) {
  // expected-error@below {{must have at least one lookup}}
  %0 = neuroshard.distribute_ids %a [] : !b -> !o
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b) {
  // expected-error@below {{reads feature "x", which its ids do not have}}
  %0 = neuroshard.distribute_ids %a [#neuroshard.lookup<sum @t["x"]>] : !b -> !o
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !ro) {
  // expected-error@below {{ids must be distributed jagged ids}}
  %0 = neuroshard.fused_lookup %a [#neuroshard.lookup<sum @t["a"]>] : !ro -> !ro
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !o) {
  // expected-error@below {{results must be distributed by owner}}
  %0 = neuroshard.fused_lookup %a [#neuroshard.lookup<sum @t["a"]>] : !o -> !rb
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !o) {
  // expected-error@below {{has 1 lookups but 2 results}}
  %0:2 = neuroshard.fused_lookup %a [#neuroshard.lookup<sum @t["a"]>] : !o -> !ro, !ro
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b, %p: !rb) {
  // expected-error@below {{partials must be distributed by owner}}
  %0 = neuroshard.combine %a partials(%p) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !rb
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64, weighted>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!ro = !neuroshard.dist<tensor<?x4xf32>, owner>
!rb = !neuroshard.dist<tensor<?x4xf32>, batch>
!rr = !neuroshard.dist<tensor<?x4xf32>, replica>
!wo = !neuroshard.dist<tensor<?xf32>, owner>
!wb = !neuroshard.dist<tensor<?xf32>, batch>
!rows = !neuroshard.dist<!neuroshard.rows, owner>
!rows_b = !neuroshard.dist<!neuroshard.rows, batch>
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.plan @plan on @cluster semantics exact {
}
func.func @f(%a: !b, %p: !ro) {
  // expected-error@below {{results must be distributed by batch}}
  %0 = neuroshard.combine %a partials(%p) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !ro
  return
}
