// The paper's search only halves columns, again and again: three devices share a table of 96
// columns as 36 + 36 + 24 in pieces of 24 and 12, not as thirds.
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=published objective=published" | FileCheck %s

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "published"
// CHECK-NEXT: shard {{.*}} cols [0, 12) on
// CHECK-NEXT: shard {{.*}} cols [12, 24) on
// CHECK-NEXT: shard {{.*}} cols [24, 48) on
// CHECK-NEXT: shard {{.*}} cols [48, 72) on
// CHECK-NEXT: shard {{.*}} cols [72, 96) on
// CHECK-NEXT: }

!ids = !neuroshard.jagged<["id"], i64>
module attributes {neuroshard.batch = 65536 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "H200">]
    levels [#neuroshard.level<"node", groups = [3], bandwidth = 300.0, latency = 10.0>]
  neuroshard.table private @item : 10000000 x 96 x f32
  func.func @forward(%ids: !ids) -> tensor<?x96xf32> {
    %0 = neuroshard.lookup sum @item[%ids, "id"] : !ids -> tensor<?x96xf32>
    return %0 : tensor<?x96xf32>
  }
}
