// Shards and pins written by hand are kept and planned around, and remarks say what was decided.
// RUN: neuroshard-opt %s --neuroshard-plan="topology=3xH200 cost-model=roofline" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: neuroshard-opt %s --neuroshard-plan=cost-model=roofline \
// RUN:     --remarks-filter=neuroshard-plan -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK
// RUN: neuroshard-opt %t.mlir --neuroshard-plan --remarks-filter=neuroshard-plan -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=KEPT
// Without a filter nothing is said.
// RUN: neuroshard-opt %s --neuroshard-plan -o /dev/null 2>&1 | count 0

// Table @a is completed left of and below what is there; @c may be on device 1 only.
// CHECK:     neuroshard.plan @mine on @cluster semantics exact provenance
// CHECK-NEXT:  neuroshard.pin @c on [1]
// CHECK-DAG:   neuroshard.shard "right" of @a rows [0, 600) cols [32, 64) on [2]
// CHECK-DAG:   neuroshard.shard "low" of @a rows [600, 1000) cols [0, 64) on [0]
// CHECK-DAG:   neuroshard.shard "everywhere" of @b rows [0, 100) cols [0, 6) on [0, 1, 2]
// CHECK-DAG:   of @a rows [0, 600) cols [0, {{8|16|24|32}}) on
// CHECK-DAG:   of @c rows [0, 100) cols [0, {{.*}}) on [1]

// What is about a table is at the table.
// REMARK-DAG: plan-partial.mlir:[[#@LINE+19]]:3: remark: [Passed] Decision {{.*}}Function=mine{{.*}}bottleneck: device
// REMARK-DAG: plan-partial.mlir:[[#@LINE+15]]:3: remark: [Passed] Decision {{.*}}Function=mine{{.*}}table 'a' is cut
// REMARK-DAG: remark: [Analysis] Cost {{.*}}predicted cost {{[0-9.]+}} ms, no plan is below {{[0-9.]+}} ms
// REMARK-DAG: remark: [Analysis] Step {{.*}}input {{[0-9.]+}} ms, forward
// REMARK-DAG: remark: [Analysis] Tried
// REMARK-DAG: remark: [Analysis] Stopped {{.*}}budget of {{[0-9]+}} edits drawn, of which {{[0-9]+}} could be made, then no step improves the plan

// KEPT: remark: [Passed] Kept {{.*}}the plan is complete and valid; its {{[0-9]+}} shards are kept as they are

!ids = !neuroshard.jagged<["a", "b", "c"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<3 x "H200">]
    levels [#neuroshard.level<"node", groups = [3], bandwidth = 372.0, latency = 10.9>]
    host_memory [2199023255552]
  neuroshard.table private @a : 1000 x 64 x f32
  neuroshard.table private @b : 100 x 6 x f32
  neuroshard.table private @c : 100 x 6 x f32
  neuroshard.plan @mine on @cluster semantics exact {
    neuroshard.shard "low" of @a rows [600, 1000) cols [0, 64) on [0]
    neuroshard.pin @c on [1]
    neuroshard.shard "right" of @a rows [0, 600) cols [32, 64) on [2]
    neuroshard.shard "everywhere" of @b rows [0, 100) cols [0, 6) on [0, 1, 2]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x6xf32>, tensor<?x6xf32>) {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x64xf32>
    %1 = neuroshard.lookup sum @b[%ids, "b"] : !ids -> tensor<?x6xf32>
    %2 = neuroshard.lookup sum @c[%ids, "c"] : !ids -> tensor<?x6xf32>
    return %0, %1, %2 : tensor<?x64xf32>, tensor<?x6xf32>, tensor<?x6xf32>
  }
}
