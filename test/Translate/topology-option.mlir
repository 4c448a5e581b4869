// The option --topology gives a module without a topology one, and is refused beside another.
// RUN: split-file %s %t
// RUN: neuroshard-translate --mlir-to-workload --topology=4xH200 %t/without.mlir -o %t/workload.json
// RUN: FileCheck %s --input-file=%t/workload.json
// RUN: not neuroshard-translate --mlir-to-workload --topology=4xH200 %t/with.mlir 2>&1 | FileCheck %s --check-prefix=SECOND
// RUN: not neuroshard-translate --plan-to-json --topology=4xH200 %t/with.mlir 2>&1 | FileCheck %s --check-prefix=SECOND
// CHECK-COUNT-4: "class":"H200"
// SECOND: error: the module has a topology, and --topology gives another

//--- without.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @t : 100 x 8 x f32
}

//--- with.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
    levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
  neuroshard.table private @t : 100 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 8) on [0]
  }
}
