// Device classes of users: read from the topology, kept in the IR, priced as stated.
// RUN: split-file %s %t
// RUN: neuroshard-opt %t/own.mlir --neuroshard-plan -o %t/planned.mlir
// RUN: FileCheck %s < %t/planned.mlir
// RUN: neuroshard-opt %t/planned.mlir --verify-roundtrip -o /dev/null
// RUN: neuroshard-opt %t/none.mlir "--neuroshard-plan=topology=2xMYCARD@%t/cards.json" | FileCheck %s --check-prefix=FILE
// RUN: not neuroshard-opt %t/bad.mlir --neuroshard-plan 2>&1 | FileCheck %s --check-prefix=BAD

// CHECK: neuroshard.topology
// CHECK-SAME: neuroshard.device_classes = [{like = "H100", memory_bytes = 40000000000 : i64, name = "MYCARD", per_shard_us = 2.500000e-01 : f64}]
// CHECK: neuroshard.shard
// FILE: devices [#neuroshard.devices<2 x "MYCARD">]
// FILE-SAME: neuroshard.device_classes = [{like = "H100", memory_bytes = 68719476736 : i64, name = "MYCARD"}]
// BAD: error: device_classes[0].memory_byte: unknown field; did you mean 'memory_bytes'?

//--- own.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<2 x "MYCARD">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
    {neuroshard.device_classes = [{name = "MYCARD", like = "H100",
       memory_bytes = 40000000000 : i64, per_shard_us = 0.25 : f64}]}
  neuroshard.table private @a : 1000 x 64 x f32
  func.func @forward(%ids: !neuroshard.jagged<["a"], i64>) -> tensor<?x64xf32> {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
//--- none.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @a : 1000 x 64 x f32
  func.func @forward(%ids: !neuroshard.jagged<["a"], i64>) -> tensor<?x64xf32> {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
//--- bad.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<2 x "MYCARD">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
    {neuroshard.device_classes = [{name = "MYCARD", like = "H100", memory_byte = 4 : i64}]}
  neuroshard.table private @a : 1000 x 64 x f32
  func.func @forward(%ids: !neuroshard.jagged<["a"], i64>) -> tensor<?x64xf32> {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x64xf32>
    return %0 : tensor<?x64xf32>
  }
}
//--- cards.json
{"device_classes": [{"name": "MYCARD", "like": "H100", "memory_bytes": "64GiB"}]}
