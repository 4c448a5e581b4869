// The default search cuts what is too dear for one device, and copies a small table whose sums of rows cost less than its
// results, where a message more costs little.
// RUN: neuroshard-opt %s --neuroshard-plan | FileCheck %s

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "default"
// CHECK-COUNT-2: shard {{.*}} of @dear {{.*}} cols
// CHECK: shard {{.*}} of @small rows [0, 100) cols [0, 8) on [0, 1]
// CHECK-NOT: neuroshard.shard

!ids = !neuroshard.jagged<["dear", "small"], i64>
module attributes {neuroshard.batch = 65536 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H100">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 372.0, latency = 0.5>]
  neuroshard.table private @dear : 1000000 x 128 x f32
  neuroshard.table private @small : 100 x 8 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x128xf32>, tensor<?x8xf32>) {
    %a = neuroshard.lookup sum @dear[%ids, "dear"] {stats = #neuroshard.feature<mean = 50.0>} : !ids -> tensor<?x128xf32>
    %b = neuroshard.lookup sum @small[%ids, "small"] : !ids -> tensor<?x8xf32>
    return %a, %b : tensor<?x128xf32>, tensor<?x8xf32>
  }
}
