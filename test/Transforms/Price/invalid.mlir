// Plans that cannot be priced: each gets one error.

// RUN: split-file %s %t
// RUN: not neuroshard-opt %t/none.mlir --neuroshard-price 2>&1 | FileCheck %t/none.mlir
// RUN: not neuroshard-opt %t/partial.mlir --neuroshard-price 2>&1 | FileCheck %t/partial.mlir
// RUN: not neuroshard-opt %t/whole.mlir --neuroshard-price=cost-model=nothing 2>&1 | FileCheck %t/whole.mlir --check-prefix=MODEL
// RUN: not neuroshard-opt %t/whole.mlir --neuroshard-price=cost-model=reference 2>&1 | FileCheck %t/whole.mlir --check-prefix=OBJECTIVE
// RUN: not neuroshard-opt %t/whole.mlir --neuroshard-to-sharded --neuroshard-price 2>&1 | FileCheck %t/whole.mlir --check-prefix=LEVEL
// RUN: not neuroshard-opt %t/no-batch.mlir --neuroshard-price 2>&1 | FileCheck %t/no-batch.mlir

//--- none.mlir
// CHECK: error: {{.*}}plan
module attributes {neuroshard.batch = 256 : i64} {}

//--- partial.mlir
// CHECK: partial.mlir:[[#@LINE+5]]:3: error: {{.*}}t
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.table private @t : 100 x 16 x f32
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"host", groups = [2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 50) cols [0, 16) on [0]
  }
  func.func @forward(%ids: !neuroshard.jagged<["f"], i64>) -> tensor<?x16xf32> {
    %r = neuroshard.lookup sum @t[%ids, "f"] : !neuroshard.jagged<["f"], i64> -> tensor<?x16xf32>
    return %r : tensor<?x16xf32>
  }
}

//--- whole.mlir
// MODEL: error: {{.*}}expected auto, roofline, reference, .safetensors files separated by commas or a machine file (.json), got: 'nothing'
// OBJECTIVE: error: objective: cost model 'reference' gives one number for forward and backward; it serves only the objective 'published'
// LEVEL: error: {{.*}} does not belong in a module of the planned level; a plan is priced with the lookups that it is for
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.table private @t : 100 x 16 x f32
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"host", groups = [2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 16) on [0]
  }
  func.func @forward(%ids: !neuroshard.jagged<["f"], i64>) -> tensor<?x16xf32> {
    %r = neuroshard.lookup sum @t[%ids, "f"] : !neuroshard.jagged<["f"], i64> -> tensor<?x16xf32>
    return %r : tensor<?x16xf32>
  }
}

//--- no-batch.mlir
// CHECK: error: the global batch is not known; set the attribute 'neuroshard.batch'
module {
  neuroshard.table private @t : 100 x 16 x f32
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"host", groups = [2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "t" of @t rows [0, 100) cols [0, 16) on [0]
  }
}
