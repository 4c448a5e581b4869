// A plan in use is changed only where that pays; remarks say what moves.
// RUN: split-file %s %t
// RUN: neuroshard-opt %t/model.mlir -o %t/kept.mlir --remarks-filter=neuroshard-plan \
// RUN:   --neuroshard-plan="cost-model=roofline previous=%t/previous.json horizon-steps=0.001" \
// RUN:   2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: FileCheck %s < %t/kept.mlir
// RUN: neuroshard-opt %t/model.mlir -o %t/moved.mlir --remarks-filter=neuroshard-plan \
// RUN:   --neuroshard-plan="cost-model=roofline previous=%t/previous.json horizon-steps=1e9" \
// RUN:   2>&1 | FileCheck %s --check-prefix=MOVED
// RUN: neuroshard-opt %t/other.mlir -o /dev/null --remarks-filter=neuroshard-plan \
// RUN:   --neuroshard-plan="cost-model=roofline previous=%t/previous.json" \
// RUN:   2>&1 | FileCheck %s --check-prefix=OTHER

// KEPT-DAG: Previous{{.*}}Remark="the previous plan would cost {{.*}} ms"
// KEPT-DAG: Decision{{.*}}chosen: the previous plan carried over: {{.*}} ms, moves 0 B
// CHECK: horizon_steps
// CHECK: neuroshard.shard "mine" of @user rows [0, 1000000) cols [0, 64) on [0]
// CHECK: neuroshard.shard "yours" of @item rows [0, 1000000) cols [0, 64) on [0]

// MOVED: Moved{{.*}}Remark="'{{user|item}}', {{.*}}: rows [{{.*}} from device 0 to 1

// OTHER: Previous{{.*}}Remark="the previous plan does not serve: {{.*}}

//--- previous.json
{
  "schema": "neuroshard.plan.v1", "device_count": 2,
  "shards": [
    {"name": "mine", "table": "user", "rows": [0, 1000000], "cols": [0, 64], "devices": [0], "tier": "hbm"},
    {"name": "yours", "table": "item", "rows": [0, 1000000], "cols": [0, 64], "devices": [0], "tier": "hbm"}
  ]
}

//--- model.mlir
!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 4096 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @user : 1000000 x 64 x f32
  neuroshard.table private @item : 1000000 x 64 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"]
      {stats = #neuroshard.feature<mean = 20.0>} : !ids -> tensor<?x64xf32>
    %i = neuroshard.lookup sum @item[%ids, "item"]
      {stats = #neuroshard.feature<mean = 20.0>} : !ids -> tensor<?x64xf32>
    return %u, %i : tensor<?x64xf32>, tensor<?x64xf32>
  }
}

//--- other.mlir
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 4096 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @user : 1000000 x 64 x f32
  func.func @forward(%ids: !ids) -> tensor<?x64xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    return %u : tensor<?x64xf32>
  }
}
