// Whole tables on devices drawn by the seed: the same seed gives the same plan.
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=random seed=1" > %t.1
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=random seed=1" > %t.again
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=random seed=2" > %t.2
// RUN: cmp %t.1 %t.again
// RUN: not cmp %t.1 %t.2
// RUN: FileCheck %s --input-file=%t.1

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "random"
// CHECK-COUNT-4: rows [0, 100) cols [0, 8) on [{{[0-7]}}]
// CHECK-NOT: neuroshard.shard

!ids = !neuroshard.jagged<["a", "b", "c", "d"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<8 x "CPU">]
    levels [#neuroshard.level<"node", groups = [8], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table private @a : 100 x 8 x f32
  neuroshard.table private @b : 100 x 8 x f32
  neuroshard.table private @c : 100 x 8 x f32
  neuroshard.table private @d : 100 x 8 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
    %a = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x8xf32>
    %b = neuroshard.lookup sum @b[%ids, "b"] : !ids -> tensor<?x8xf32>
    %c = neuroshard.lookup sum @c[%ids, "c"] : !ids -> tensor<?x8xf32>
    %d = neuroshard.lookup sum @d[%ids, "d"] : !ids -> tensor<?x8xf32>
    return %a, %b, %c, %d : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  }
}
