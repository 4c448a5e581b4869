// Tables of 8 and 4 bits under all kinds of cuts equal the unsharded program, which reads their values as
// f32, in memory and from a file. They are for CPUs, and nothing trains them.

// RUN: rm -rf %t && mkdir -p %t/files
// RUN: neuroshard-compile %s -o %t/artifact --reference -O 0
// RUN: neuroshard-run %t/artifact --batch 50 --pooling 4 --steps 2 --tier-dir %t/files --tolerance 1e-6 | FileCheck %s
// CHECK: forward on 3 devices, global batch 50, compared with the unsharded program
// CHECK: largest difference
// CHECK-SAME: values differ
// CHECK: largest difference
// CHECK-SAME: values differ

// RUN: not neuroshard-compile %s -o %t/none --training 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: no looked-up table has an optimizer, so there is nothing to train
// RUN: not neuroshard-compile %s -o %t/none --emulate 2>&1 | FileCheck %s --check-prefix=GPU
// GPU: tables of int{{[48]}} are served by CPUs alone; for GPUs take f16

!ids = !neuroshard.jagged<["a", "b", "c", "d"], i64, weighted>

module attributes {neuroshard.batch = 50 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<3 x "CPU">]
    levels [#neuroshard.level<"node", groups = [3], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table private @whole : 100 x 37 x !neuroshard.quantized<int8>
  neuroshard.table private @grid : 90 x 83 x !neuroshard.quantized<int4>
  neuroshard.table private @columns : 70 x 520 x !neuroshard.quantized<fp8>
  neuroshard.table private @everywhere : 50 x 519 x !neuroshard.quantized<int4>
  neuroshard.table private @file : 300 x 20 x !neuroshard.quantized<int8>
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "whole" of @whole rows [0, 100) cols [0, 37) on [2]
    neuroshard.shard "grid_0" of @grid rows [0, 40) cols [0, 12) on [0]
    neuroshard.shard "grid_1" of @grid rows [0, 40) cols [12, 83) on [1]
    neuroshard.shard "grid_2" of @grid rows [40, 90) cols [0, 12) on [2]
    neuroshard.shard "grid_3" of @grid rows [40, 90) cols [12, 83) on [0]
    neuroshard.shard "columns_0" of @columns rows [0, 70) cols [0, 300) on [1]
    neuroshard.shard "columns_1" of @columns rows [0, 70) cols [300, 520) on [0]
    neuroshard.shard "everywhere" of @everywhere rows [0, 50) cols [0, 519) on [0, 1, 2]
    neuroshard.shard "file" of @file rows [0, 300) cols [0, 20) on [1] tier ssd cache 64
  }
  func.func @forward(%ids: !ids) -> (tensor<?x37xf32>, tensor<?x83xf16>, tensor<?x520xf32>,
                                     tensor<?x519xbf16>, tensor<?x20xf32>) {
    %0 = neuroshard.lookup sum @whole[%ids, "a"] weighted : !ids -> tensor<?x37xf32>
    %1 = neuroshard.lookup mean @grid[%ids, "b"] padding_idx 0 : !ids -> tensor<?x83xf16>
    %2 = neuroshard.lookup unpooled @columns[%ids, "c"] : !ids -> tensor<?x520xf32>
    %3 = neuroshard.lookup sum @everywhere[%ids, "d"] : !ids -> tensor<?x519xbf16>
    %4 = neuroshard.lookup sum @file[%ids, "d"] : !ids -> tensor<?x20xf32>
    return %0, %1, %2, %3, %4 : tensor<?x37xf32>, tensor<?x83xf16>, tensor<?x520xf32>,
                                tensor<?x519xbf16>, tensor<?x20xf32>
  }
}
