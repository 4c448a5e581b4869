// Of two plans the one that is named is followed, with or without its '@'.
// RUN: neuroshard-opt %s --neuroshard-to-sharded=plan-name=second | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-to-sharded=plan-name=@second | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-plan="plan-name=@third" | FileCheck %s --check-prefix=NEW
// RUN: not neuroshard-opt %s --neuroshard-to-sharded 2>&1 | FileCheck %s --check-prefix=SEVERAL
// RUN: not neuroshard-opt %s --neuroshard-verify-planned=plan=@fourth 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: neuroshard-compile %s --plan-name second -o %t && FileCheck %s --check-prefix=FILE --input-file=%t/plan.json
// RUN: not neuroshard-opt %s --neuroshard-keep-entry=entry=@forwards 2>&1 | FileCheck %s --check-prefix=ENTRY

// CHECK: func.func @embeddings_start({{.*}} attributes {neuroshard.plan = @second}
// NEW: neuroshard.plan @third on @cluster
// SEVERAL: 'neuroshard.plan' is not the only one in the module; name the one that is meant: 'plan' of a pass, 'plan-name' of a pipeline or tool
// NONE: the module has no plan '@fourth'
// FILE: "shard_of_second"
// ENTRY: the module has no function '@forwards' with a body

!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 20.0>]
  neuroshard.table private @t : 100 x 16 x f32
  neuroshard.plan @first on @cluster semantics exact {
    neuroshard.shard "shard_of_first" of @t rows [0, 100) cols [0, 16) on [0]
  }
  neuroshard.plan @second on @cluster semantics exact {
    neuroshard.shard "shard_of_second" of @t rows [0, 100) cols [0, 16) on [1]
  }
  func.func @forward(%ids: !ids) -> tensor<?x16xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x16xf32>
    return %0 : tensor<?x16xf32>
  }
}
