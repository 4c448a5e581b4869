// Bytecode that version 4 wrote, with disks of hosts: v4.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v4.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: host_disks [#neuroshard.disk<bytes = 4000000000000, reads = 2.000000e+06>, #neuroshard.disk<>]
neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"cluster", groups = [4], bandwidth = 1.0>,
          #neuroshard.level<"node", groups = [2, 2], bandwidth = 9.0>]
  host_memory [64000000000, 64000000000]
  host_disks [#neuroshard.disk<bytes = 4000000000000, reads = 2000000.0>, #neuroshard.disk<>]
neuroshard.table @user : 100 x 16 x f32
neuroshard.table @item : 50 x 8 x f16
// CHECK: neuroshard.plan @plan
neuroshard.plan @plan on @cluster semantics exact {
  // CHECK-NEXT: neuroshard.shard "user_0" of @user rows [0, 100) cols [0, 8) on [0] route relay
  neuroshard.shard "user_0" of @user rows [0, 100) cols [0, 8) on [0] route relay
  // CHECK-NEXT: neuroshard.shard "user_1" of @user rows [0, 100) cols [8, 16) on [2] route relay
  neuroshard.shard "user_1" of @user rows [0, 100) cols [8, 16) on [2] route relay
  // CHECK-NEXT: neuroshard.shard "item" of @item rows [0, 50) cols [0, 8) on [1] tier ssd cache 32 policy lfu
  neuroshard.shard "item" of @item rows [0, 50) cols [0, 8) on [1] tier ssd cache 32 policy lfu
}
