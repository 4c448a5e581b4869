// Shards in host memory are refused for target native: by the planner, by its verifier, and by the compiler.
// RUN: split-file %s %t
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-plan=cost-model=roofline -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PLAN
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-verify-planned -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=VERIFY
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-outline --neuroshard-shard -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SHARD

// PLAN: target native does not run shards in tier dram
// VERIFY: shard 'cold': target native does not run shards in tier dram
// SHARD: 'neuroshard.shard' op target native does not run shards in tier dram

//--- plan.mlir
!ids = !neuroshard.jagged<["a"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<1 x "H200">]
    levels [#neuroshard.level<"node", groups = [1], bandwidth = 350.0, latency = 15.0>]
    host_memory [2199023255552]
  neuroshard.table private @a : 1000 x 64 x f32
  neuroshard.plan @mine on @cluster semantics exact {
    neuroshard.shard "cold" of @a rows [0, 1000) cols [0, 64) on [0] tier dram
  }
  func.func @forward(%ids: !ids) -> tensor<?x64xf32> {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
