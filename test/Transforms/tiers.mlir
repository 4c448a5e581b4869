// Shards in host memory without a cache are refused for target native: by the planner, by its verifier, and by
// the compiler. Those with one are refused on CPUs.
// RUN: split-file %s %t
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-plan=cost-model=roofline -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=PLAN
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-verify-planned -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=VERIFY
// RUN: not neuroshard-opt %t/plan.mlir --neuroshard-outline --neuroshard-shard -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SHARD

// RUN: not neuroshard-opt %t/cpu.mlir --neuroshard-verify-planned -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CPU

// PLAN: a shard in tier dram needs a cache for target native
// VERIFY: shard 'cold': a shard in tier dram needs a cache for target native
// SHARD: 'neuroshard.shard' op needs a cache for target native, which keeps rows of tier dram behind one
// CPU: shard 'cold': tier dram is for GPUs: the memory of device 0, a CPU, is that of its host; use hbm or ssd

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

//--- cpu.mlir
!ids = !neuroshard.jagged<["a"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<1 x "CPU">]
    levels [#neuroshard.level<"node", groups = [1], bandwidth = 350.0, latency = 15.0>]
    host_memory [2199023255552]
  neuroshard.table private @a : 1000 x 64 x f32
  neuroshard.plan @mine on @cluster semantics exact {
    neuroshard.shard "cold" of @a rows [0, 1000) cols [0, 64) on [0] tier dram cache 96
  }
  func.func @forward(%ids: !ids) -> tensor<?x64xf32> {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
