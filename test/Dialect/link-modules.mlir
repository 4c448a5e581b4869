// Two modules at the sharded level, with plans, tables and step functions of the same names, linked: what is renamed
// in the second is renamed wherever it is used, and each step keeps its plan.
// RUN: neuroshard-test-opt %s --neuroshard-test-link-modules | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!o = !neuroshard.dist<!ids, owner>
!pending = !neuroshard.pending<!b, !o>

// CHECK:       neuroshard.topology @cluster devices
// CHECK:       neuroshard.table private @t : 10 x 4 x f32
// CHECK:       neuroshard.plan @plan on @cluster
// CHECK-NEXT:    neuroshard.shard "first" of @t rows
// CHECK:       func.func @embeddings_start(
// CHECK-SAME:    attributes {neuroshard.plan = @plan}
// CHECK:         neuroshard.distribute_ids {{.*}}#neuroshard.lookup<sum @t["a"]>
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 10 x 4 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "first" of @t rows [0, 10) cols [0, 4) on [0]
  }
  func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
    %b = neuroshard.scatter_batch %ids : !ids -> !b
    %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
    %p = neuroshard.suspend %b, %o : !b, !o -> !pending
    return %p : !pending
  }
}

// CHECK:       neuroshard.topology @[[CLUSTER:cluster_.*]] devices
// CHECK:       neuroshard.table private @[[T:t_.*]] : 20 x 8 x f32
// CHECK:       neuroshard.plan @[[PLAN:plan_.*]] on @[[CLUSTER]] semantics
// CHECK-NEXT:    neuroshard.shard "second" of @[[T]] rows
// CHECK-NEXT:    neuroshard.pin @[[T]] on
// CHECK:       neuroshard.exchange @e of !ids on @[[PLAN]] lookups [#neuroshard.lookup<sum @[[T]]["a"]>]
// CHECK:       func.func @[[START:embeddings_start_.*]](
// CHECK-SAME:    attributes {neuroshard.plan = @[[PLAN]]}
// CHECK:         neuroshard.distribute_ids {{.*}}#neuroshard.lookup<sum @[[T]]["a"]>
// CHECK:       func.func @forward(
// CHECK-NEXT:    call @[[START]]
// CHECK-NEXT:    neuroshard.lookup sum @[[T]][
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<4 x "H200">]
    levels [#neuroshard.level<"node", groups = [4], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 20 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "second" of @t rows [0, 20) cols [0, 8) on [3]
    neuroshard.pin @t on [3]
  }
  neuroshard.exchange @e of !ids on @plan lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x8xf32>]
  func.func @embeddings_start(%ids: !ids) -> !pending attributes {neuroshard.plan = @plan} {
    %b = neuroshard.scatter_batch %ids : !ids -> !b
    %o = neuroshard.distribute_ids %b [#neuroshard.lookup<sum @t["a"]>] : !b -> !o
    %p = neuroshard.suspend %b, %o : !b, !o -> !pending
    return %p : !pending
  }
  func.func @forward(%ids: !ids) -> (!pending, tensor<?x8xf32>) {
    %0 = call @embeddings_start(%ids) : (!ids) -> !pending
    %1 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0, %1 : !pending, tensor<?x8xf32>
  }
}
