// CSE merges equal lookups and drops unused ones, but not across an update, and
// leaves collectives alone.
// RUN: neuroshard-dialect-opt %s --cse | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!rows = !neuroshard.dist<!neuroshard.rows, owner>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"n", groups = [1], bandwidth = 1.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table @u : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 10) cols [0, 4) on [0]
}

// CHECK-LABEL: func.func @merge(
// CHECK-NEXT:    %[[ROWS:.*]] = neuroshard.lookup sum @t[%{{.*}}, "a"]
// CHECK-NEXT:    %[[OTHER:.*]] = neuroshard.lookup sum @t[%{{.*}}, "b"]
// CHECK-NEXT:    return %[[ROWS]], %[[ROWS]], %[[OTHER]]
func.func @merge(%ids: !ids) -> (tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %1 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %2 = neuroshard.lookup sum @t[%ids, "b"] : !ids -> tensor<?x4xf32>
  %unused = neuroshard.lookup mean @t[%ids, "b"] : !ids -> tensor<?x4xf32>
  return %0, %1, %2 : tensor<?x4xf32>, tensor<?x4xf32>, tensor<?x4xf32>
}

// CHECK-LABEL: func.func @update_between(
// CHECK-NEXT:    %[[BEFORE:.*]] = neuroshard.lookup sum @t
// CHECK-NEXT:    neuroshard.update @t
// CHECK-NEXT:    %[[AFTER:.*]] = neuroshard.lookup sum @t
// CHECK-NEXT:    return %[[BEFORE]], %[[AFTER]]
func.func @update_between(%ids: !ids, %lr: f32, %step: i64) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>] ids(%ids : !ids)
    gradients(%0 : tensor<?x4xf32>) learning_rate %lr step %step
  %1 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// Sums of rows come with norms of weights, so an update between two of them counts.
// CHECK-LABEL: func.func @reduce_rows(
// CHECK-NEXT:    %[[BEFORE:.*]] = neuroshard.reduce_rows
// CHECK-NEXT:    neuroshard.apply_rows
// CHECK-NEXT:    %[[AFTER:.*]] = neuroshard.reduce_rows
// CHECK-NEXT:    return %[[BEFORE]], %[[AFTER]], %[[AFTER]]
func.func @reduce_rows(%o: !o, %g: !neuroshard.dist<tensor<?x4xf32>, owner>, %rows: !rows, %lr: f32, %step: i64) -> (!rows, !rows, !rows) {
  %0 = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%g : !neuroshard.dist<tensor<?x4xf32>, owner>) -> !rows
  neuroshard.apply_rows %rows [@t] learning_rate %lr step %step : !rows
  %1 = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%g : !neuroshard.dist<tensor<?x4xf32>, owner>) -> !rows
  %2 = neuroshard.reduce_rows [#neuroshard.lookup<sum @t["a"]>] ids(%o : !o) gradients(%g : !neuroshard.dist<tensor<?x4xf32>, owner>) -> !rows
  return %0, %1, %2 : !rows, !rows, !rows
}

// Every rank takes part in every collective, so none is merged or dropped.
// CHECK-LABEL: func.func @collectives(
// CHECK-COUNT-3: neuroshard.distribute_ids
// CHECK-NEXT:    return
func.func @collectives(%b: !b) -> (!o, !o) {
  %0 = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %1 = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
  %unused = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["b"]>] : !b -> !o
  return %0, %1 : !o, !o
}

// CHECK-LABEL: func.func @steps(
// CHECK-NEXT:    neuroshard.route
// CHECK-NEXT:    neuroshard.route
// CHECK-NEXT:    return
neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
func.func @steps(%device: !neuroshard.device, %ids: !ids) {
  %0 = neuroshard.route @e(%device, %ids) : !ids
  %1 = neuroshard.route @e(%device, %ids) : !ids
  return
}
