// Machine code of updates without a sort: no memory of a thread's own, no shared memory, no
// barrier of a block, no atomic; sums read gradients 16 bytes at a time.
// RUN: rm -rf %t && neuroshard-compile %s --training --batch 64 --gpu sm_80,sm_90 -o %t
// RUN: FileCheck %s --input-file=%t/program0.ptx
// RUN: FileCheck %s --input-file=%t/program0.ptx --check-prefix=NONE
// RUN: FileCheck %s --input-file=%t/program0.gpu.json --check-prefix=JSON
// RUN: %python %S/../../../tools/gpu/check_sass.py %t/program0.sm_80.cubin %t/program0.sm_90.cubin \
// RUN:   | FileCheck %s --check-prefix=SASS
// RUN: rm -rf %t && not neuroshard-compile %s --training --batch 64 --gpu sm_80 --small-rows 1025 -o %t 2>&1 \
// RUN:   | FileCheck %s --check-prefix=MANY

!ids = !neuroshard.jagged<["a", "b"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t0 : 64 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @t1 : 5 x 20 x bf16 {optimizer = #neuroshard.optimizer<adam>}
func.func @forward(%ids: !ids) -> (tensor<?x128xf32>, tensor<?x20xf32>) {
  %0 = neuroshard.lookup sum @t0[%ids, "a"] : !ids -> tensor<?x128xf32>
  %1 = neuroshard.lookup mean @t1[%ids, "b"] : !ids -> tensor<?x20xf32>
  return %0, %1 : tensor<?x128xf32>, tensor<?x20xf32>
}

// CHECK: .entry nsg_expand(
// CHECK: .entry nsg_small_order(
// CHECK-NOT: sync
// CHECK-NOT: atom.
// CHECK: .entry nsg_small_sums(
// CHECK-COUNT-4: ld.global.nc.v4
// CHECK: bar.warp.sync
// CHECK: .entry nsg_small_update(
// CHECK: ld.global.nc.v4
// CHECK: shfl.sync.bfly.b32
// CHECK: sqrt.rn.f32

// NONE-NOT: nsg_update
// NONE-NOT: nsg_ranges
// NONE-NOT: .local
// NONE-NOT: .shared
// NONE-NOT: bar.sync
// NONE-NOT: fma.rn.f32

// JSON: "update_variant": -1
// JSON: "partial_variant": -1
// JSON: "small_sums_variant": 0
// JSON: "small_update_variant": 0

// SASS-DAG: nsg_small_order
// SASS-DAG: nsg_small_sums
// SASS-DAG: nsg_small_update

// MANY: --small-rows
