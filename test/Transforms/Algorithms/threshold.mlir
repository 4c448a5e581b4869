// distributed-embeddings cuts by size alone: a table above the upper threshold by rows over all
// devices, though three of them could hold it; the small one stays whole.
// RUN: neuroshard-opt %s --neuroshard-plan=algorithm=threshold | FileCheck %s

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "threshold"
// CHECK-NEXT: shard {{.*}} of @user rows [0, 50000000) cols [0, 4) on [0]
// CHECK-NEXT: shard {{.*}} of @user rows [50000000, 100000000) cols [0, 4) on [1]
// CHECK-NEXT: shard {{.*}} of @user rows [100000000, 150000000) cols [0, 4) on [2]
// CHECK-NEXT: shard {{.*}} of @user rows [150000000, 200000000) cols [0, 4) on [3]
// CHECK-NEXT: shard {{.*}} of @day rows [0, 365) cols [0, 16) on
// CHECK-NEXT: }

!ids = !neuroshard.jagged<["user", "day"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU", memory = 2147483648>]
    levels [#neuroshard.level<"node", groups = [4], bandwidth = 10.0, latency = 10.0>]
  neuroshard.table private @user : 200000000 x 4 x f32
  neuroshard.table private @day : 365 x 16 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x4xf32>, tensor<?x16xf32>) {
    %0 = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    %1 = neuroshard.lookup sum @day[%ids, "day"] : !ids -> tensor<?x16xf32>
    return %0, %1 : tensor<?x4xf32>, tensor<?x16xf32>
  }
}
