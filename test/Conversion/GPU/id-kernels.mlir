// The text of the kernels on ids is a module by itself; what it only declares becomes constants
// and fields of GpuKernelABI.h when a program gets one of them.
// RUN: mlir-opt %S/../../../lib/Conversion/GPU/IdKernels.mlir | FileCheck %s --check-prefix=TEXT
// RUN: neuroshard-opt %s --convert-neuroshard-to-gpu --neuroshard-gpu-simplify | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 10) cols [0, 4) on [0]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<sum @t["a"]>] results [tensor<?x4xf32>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 4 x f32 of 4 shards ["t0"] {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.local_lookup pooled of 0 in @e binds [0]
}

// TEXT: gpu.func @nsg_expand(
// TEXT: call @NSG_EXPAND_ITEMS() : () -> index
// TEXT: gpu.func @nsg_ranges(

// CHECK: gpu.func @nsg_expand({{.*}}) kernel
// CHECK-SAME: known_block_size = array<i32: 256, 1, 1>, nvvm.minctasm = 4 : i32
// CHECK-NOT: call
// 32 items to a block of 256 threads: 8 threads to an item.
// CHECK: arith.divui %{{.*}}, %c8{{.*}} : index
// CHECK: gpu.return
