// Devices with the same shards in another order share a program. Pooled results of one type can be
// had in one tensor.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-shard --neuroshard-fuse --neuroshard-partition | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 5.0>]
neuroshard.table private @a : 10 x 8 x f32
neuroshard.table private @b : 10 x 24 x f32

// On device 0 the narrow shard comes first, on device 1 the wide one.
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "a0" of @a rows [0, 5) cols [0, 8) on [0]
  neuroshard.shard "b1" of @b rows [5, 10) cols [0, 24) on [1]
  neuroshard.shard "b0" of @b rows [0, 5) cols [0, 24) on [0]
  neuroshard.shard "a1" of @a rows [5, 10) cols [0, 8) on [1]
}

// CHECK: neuroshard.device_program @program0 for [0, 1]
// CHECK: local_table 0 : 8 x f32 of 8 shards ["a0", "a1"]
// CHECK: local_table 1 : 24 x f32 of 24 shards ["b0", "b1"]
// CHECK-NOT: device_program
// CHECK: func.func @embeddings_wait(
// CHECK: exchange_results @exchange0
// CHECK: func.func @embeddings_wait_joined(%[[D:.*]]: !neuroshard.device, %[[P:.*]]: !{{.*}}) -> tensor<?x32xf32> {
// CHECK-NEXT: %[[R:.*]]:2 = neuroshard.resume %[[P]]
// CHECK-NEXT: %[[X:.*]] = neuroshard.exchange_joined_results @exchange0(%[[D]], %[[R]]#0, %[[R]]#1) -> tensor<?x32xf32>
// CHECK-NEXT: neuroshard.release %[[D]], %[[R]]#1
// CHECK-NEXT: neuroshard.release %[[D]], %[[R]]#0
// CHECK-NEXT: return %[[X]] : tensor<?x32xf32>
func.func @forward(%ids: !ids) -> (tensor<?x8xf32>, tensor<?x24xf32>) {
  %a = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x8xf32>
  %b = neuroshard.lookup sum @b[%ids, "b"] : !ids -> tensor<?x24xf32>
  return %a, %b : tensor<?x8xf32>, tensor<?x24xf32>
}
