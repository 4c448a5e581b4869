// What the ops of the update on distributed values refuse.
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
func.func @f(%a: !b, %g: !ro) {
  // expected-error@below {{gradients must be distributed by batch}}
  %0 = neuroshard.distribute_gradients %a gradients(%g) [#neuroshard.lookup<sum @t["a"]>] : !b, !ro -> !ro
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
func.func @f(%a: !b, %g: !rb) {
  // expected-error@below {{results must be distributed by owner or replica}}
  %0 = neuroshard.distribute_gradients %a gradients(%g) [#neuroshard.lookup<sum @t["a"]>] : !b, !rb -> !rb
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
func.func @f(%a: !o, %b: !b, %g: !ro, %r: !rr, %lr: f32, %step: i64) {
  // expected-error@below {{gradients must be distributed by owner}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>] ids(%a : !o) gradients(%r : !rr) learning_rate %lr step %step
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
func.func @f(%a: !o, %b: !b, %g: !ro, %r: !rr, %lr: f32, %step: i64) {
  // expected-error@below {{ids must be distributed by owner or replica}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>] ids(%b : !b) gradients(%g : !ro) learning_rate %lr step %step
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
func.func @f(%a: !o, %b: !b, %g: !ro, %r: !rr, %lr: f32, %step: i64) {
  // expected-error@below {{ids must be distributed jagged ids}}
  neuroshard.fused_update [#neuroshard.lookup<sum @t["a"]>] ids(%g : !ro) gradients(%g : !ro) learning_rate %lr step %step
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
func.func @f(%a: !o, %b: !b, %g: !ro, %r: !rr, %lr: f32, %step: i64) {
  // expected-error@below {{must be distributed rows}}
  %0 = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%a : !o) gradients(%g : !ro) -> !ro
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
func.func @f(%a: !o, %b: !b, %g: !ro, %r: !rr, %lr: f32, %step: i64) {
  // expected-error@below {{rows must be distributed by owner}}
  %0 = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%a : !o) gradients(%g : !ro) -> !rows_b
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
func.func @f(%r: !rows) {
  // expected-error@below {{'u' is not a table}}
  %0 = neuroshard.exchange_norms %r [@u] : !rows
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
func.func @f(%r: !ro, %lr: f32, %step: i64) {
  // expected-error@below {{must be distributed rows}}
  neuroshard.apply_rows %r [@t] learning_rate %lr step %step : !ro
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
func.func @f(%r: !rows, %lr: f32, %step: i64) {
  // expected-error@below {{'u' is not a table}}
  neuroshard.apply_rows %r [@u] learning_rate %lr step %step : !rows
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
func.func @f(%a: !o, %g: !rb) {
  // expected-error@below {{gradients must be distributed by owner}}
  %0 = neuroshard.fused_weights_gradient %a gradients(%g) [#neuroshard.lookup<sum @t["a"] weighted>] : !o, !rb -> !wo
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
func.func @f(%a: !o, %g: !ro) {
  // expected-error@below {{result must be distributed by owner}}
  %0 = neuroshard.fused_weights_gradient %a gradients(%g) [#neuroshard.lookup<sum @t["a"] weighted>] : !o, !ro -> !wb
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
func.func @f(%a: !o, %g: !ro) {
  // expected-error@below {{lookup of feature "a" must be weighted}}
  %0 = neuroshard.fused_weights_gradient %a gradients(%g) [#neuroshard.lookup<sum @t["a"]>] : !o, !ro -> !wo
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
func.func @f(%a: !o, %g: !ro) {
  // expected-error@below {{result must be a distributed 1-D tensor of f32}}
  %0 = neuroshard.fused_weights_gradient %a gradients(%g) [#neuroshard.lookup<sum @t["a"] weighted>] : !o, !ro -> !ro
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
func.func @f(%a: !b, %w: !wo) {
  // expected-error@below {{result must be distributed by batch}}
  %0 = neuroshard.combine_weights_gradient %a partials(%w) [#neuroshard.lookup<sum @t["a"] weighted>] : !b, !wo -> !wo
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
func.func @f(%a: !b, %w: !wo) {
  // expected-error@below {{lookup of feature "a" must be weighted}}
  %0 = neuroshard.combine_weights_gradient %a partials(%w) [#neuroshard.lookup<sum @t["a"]>] : !b, !wo -> !wb
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
func.func @f(%a: !b, %w: !wo) {
  // expected-error@below {{result must be a distributed 1-D tensor of f32}}
  %0 = neuroshard.combine_weights_gradient %a partials(%w) [#neuroshard.lookup<sum @t["a"] weighted>] : !b, !wo -> !rb
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
func.func @f(%a: !b, %w: !neuroshard.dist<tensor<?xf32>, replica>) {
  // expected-error@below {{partial must be distributed by owner or batch}}
  %0 = neuroshard.combine_weights_gradient %a partials(%w) [#neuroshard.lookup<sum @t["a"] weighted>] : !b, !neuroshard.dist<tensor<?xf32>, replica> -> !wb
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
func.func @f(%a: !b, %w: !ro) {
  // expected-error@below {{partial must be a distributed 1-D tensor of f32}}
  %0 = neuroshard.combine_weights_gradient %a partials(%w) [#neuroshard.lookup<sum @t["a"] weighted>] : !b, !ro -> !wb
  return
}
