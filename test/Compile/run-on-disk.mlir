// Shards in tier "ssd" run from files, with caches whose figures are printed, on CPUs and on emulated
// GPUs; without a directory there is one error.

// RUN: rm -rf %t && mkdir -p %t/files
// RUN: neuroshard-compile %s -o %t/artifact --reference --training --emulate -O 0
// RUN: neuroshard-run %t/artifact --batch 40 --pooling 3 --steps 3 --train --pipeline-depth 2 --tier-dir %t/files --tolerance 1e-6 | FileCheck %s
// CHECK: forward on 2 devices, global batch 40, compared with the unsharded program
// CHECK: step 3
// CHECK: largest difference
// CHECK: training
// CHECK: largest difference
// CHECK: fetch
// CHECK: device 0: cache of shard "low": {{[0-9.]+}} rows per step, {{[0-9.]+}} % hits, {{[0-9.]+}} written back, waited {{[0-9.]+}} ms
// CHECK: device 1: cache of shard "high":

// RUN: env -u NEUROSHARD_TIER_DIRECTORY not neuroshard-run %t/artifact --batch 8 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: neuroshard-run: shard "low" is in tier ssd and needs a directory for its file: pass tier_directory (neuroshard-run: --tier-dir), or set NEUROSHARD_TIER_DIRECTORY
// RUN: not neuroshard-run %t/artifact --batch 8 --tier-dir %t/missing 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: neuroshard-run: cannot create the file of shard "low" in directory "{{.*}}missing": No such file or directory
// RUN: env NEUROSHARD_EMULATOR_OWN_MEMORY=1 neuroshard-run %t/artifact --batch 40 --pooling 3 --steps 3 --train --pipeline-depth 2 --device emulator --tier-dir %t/files --tolerance 1e-6 | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>

module attributes {neuroshard.batch = 40 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table private @user : 1000 x 12 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 50 x 8 x f32 {optimizer = #neuroshard.optimizer<adam>}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "low" of @user rows [0, 500) cols [0, 12) on [0] tier ssd cache 64
    neuroshard.shard "high" of @user rows [500, 1000) cols [0, 12) on [1] tier ssd cache 32 policy lfu
    neuroshard.shard "item" of @item rows [0, 50) cols [0, 8) on [0]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x12xf32>, tensor<?x8xf32>) {
    %0 = neuroshard.lookup sum @user[%ids, "a"] : !ids -> tensor<?x12xf32>
    %1 = neuroshard.lookup mean @item[%ids, "b"] : !ids -> tensor<?x8xf32>
    return %0, %1 : tensor<?x12xf32>, tensor<?x8xf32>
  }
}
