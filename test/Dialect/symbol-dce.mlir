// symbol-dce removes private tables and plans that nothing names; lookups, shards and steps keep theirs.
// RUN: neuroshard-dialect-opt %s --symbol-dce | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"n", groups = [1], bandwidth = 1.0>]
// CHECK: neuroshard.table private @looked_up
neuroshard.table private @looked_up : 10 x 4 x f32
// CHECK: neuroshard.table private @planned
neuroshard.table private @planned : 10 x 4 x f32
// CHECK: neuroshard.table private @pinned
neuroshard.table private @pinned : 10 x 4 x f32
// CHECK: neuroshard.table private @in_attribute
neuroshard.table private @in_attribute : 10 x 4 x f32
// CHECK-NOT: @dead
neuroshard.table private @dead : 10 x 4 x f32
// CHECK: neuroshard.table @public
neuroshard.table @public : 10 x 4 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "planned" of @planned rows [0, 10) cols [0, 4) on [0]
  neuroshard.pin @pinned on [0]
}
// CHECK: neuroshard.plan @of_step
neuroshard.plan @of_step on @cluster semantics exact attributes {sym_visibility = "private"} {
}
// CHECK-NOT: @unused
neuroshard.plan @unused on @cluster semantics exact attributes {sym_visibility = "private"} {
}
func.func @start(%ids: !ids) -> !neuroshard.dist<!ids, batch> attributes {neuroshard.plan = @of_step} {
  %0 = neuroshard.scatter_batch %ids : !ids -> !neuroshard.dist<!ids, batch>
  return %0 : !neuroshard.dist<!ids, batch>
}
func.func @f(%ids: !ids, %b: !neuroshard.dist<!ids, batch>) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @looked_up[%ids, "a"] : !ids -> tensor<?x4xf32>
  %1 = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @in_attribute["a"]>]
    : !neuroshard.dist<!ids, batch> -> !neuroshard.dist<!ids, owner>
  return %0 : tensor<?x4xf32>
}
