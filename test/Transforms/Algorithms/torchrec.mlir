// TorchRec's planner cuts columns into pieces of one width, a divisor of the dim that is at least
// min_partition (128, 64 or 32): thirds of 96, as 32 divides it.
// RUN: neuroshard-opt %s --neuroshard-plan=algorithm=torchrec | FileCheck %s

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "torchrec"
// CHECK-NEXT: shard {{.*}} cols [0, 32) on [0]
// CHECK-NEXT: shard {{.*}} cols [32, 64) on [1]
// CHECK-NEXT: shard {{.*}} cols [64, 96) on [2]
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
