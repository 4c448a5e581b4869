// A trained policy places whole tables, one after the other: two equal ones that fill a device
// each get a device each. The plan names the policy and how many placements were drawn from it.
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=dreamshard policy-samples=2" | FileCheck %s

// CHECK: neuroshard.plan @plan {{.*}}algorithm = "dreamshard"
// CHECK-SAME: ["policy", "placement_policy"]{{.*}}["policy_samples", "2"]
// CHECK-DAG: shard {{.*}} of @user rows [0, 20000000) cols [0, 16) on [[[#USER:]]]
// CHECK-DAG: shard {{.*}} of @item rows [0, 20000000) cols [0, 16) on [[[#1 - USER]]]

!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU", memory = 2147483648>]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 10.0>]
  neuroshard.table private @user : 20000000 x 16 x f32
  neuroshard.table private @item : 20000000 x 16 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
    %0 = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
    %1 = neuroshard.lookup sum @item[%ids, "item"] : !ids -> tensor<?x16xf32>
    return %0, %1 : tensor<?x16xf32>, tensor<?x16xf32>
  }
}
