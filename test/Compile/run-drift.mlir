// Copies that drift do not train as the unsharded program; forward and training without it run.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %s -o %t/both --training --reference -O 0
// RUN: neuroshard-run %t/both --batch 8 --pooling 3 | FileCheck %s
// CHECK: largest difference
// RUN: not neuroshard-run %t/both --batch 8 --pooling 3 --train 2>&1 | FileCheck %s --check-prefix=TRAIN
// TRAIN: neuroshard-run: copies of table 't' drift (sync_every), so that training differs from that of the unsharded program; leave out --train, or compile without --reference or sync_every
// RUN: neuroshard-compile %s -o %t/alone --training -O 0
// RUN: neuroshard-run %t/alone --batch 8 --pooling 3 --train --steps 2 | FileCheck %s --check-prefix=ALONE
// ALONE: training
// ALONE: step 2
// ALONE: training

!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
  neuroshard.table private @t : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0, 1] sync_every 3
  }
  func.func @forward(%ids: !ids) -> tensor<?x8xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
}
