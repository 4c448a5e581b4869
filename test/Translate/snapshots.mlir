// Statistics of several periods survive the way into the IR and back, and the
// planner uses them.
// RUN: split-file %s %t
// RUN: neuroshard-translate --workload-to-mlir %t/workload.json -o %t/workload.mlir
// RUN: FileCheck %s < %t/workload.mlir
// RUN: neuroshard-translate --mlir-to-workload %t/workload.mlir -o %t/again.json
// RUN: FileCheck %s --check-prefix=JSON < %t/again.json
// RUN: neuroshard-translate --workload-to-mlir %t/again.json | diff %t/workload.mlir -
// RUN: neuroshard-opt --neuroshard-plan=cost-model=roofline %t/workload.mlir -o /dev/null \
// RUN:   --remarks-filter=neuroshard-plan 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: neuroshard-opt %t/invalid.mlir -split-input-file -neuroshard-plan=topology=2xCPU -verify-diagnostics

// CHECK:      snapshots = [{name = "day", weight = 3.000000e+00 : f64},
// CHECK-SAME:   {features = [{feature = "a_id", stats = #neuroshard.feature<mean = 1.200000e+01, p99 = 2.000000e+01>},
// CHECK-SAME:     {feature = "b_id", stats = #neuroshard.feature<mean = 1.000000e+00, presence = 0.000000e+00>}],
// CHECK-SAME:    name = "night", tables = [{access = #neuroshard.access<batch = 64, reuse = [1.000000e+00, {{.*}}]>, table = @a}],
// CHECK-SAME:    weight = 1.000000e+00 : f64}]

// REMARK-DAG: Snapshot{{.*}}Remark="'day' (75 %): {{[0-9.]+}} ms"
// REMARK-DAG: Snapshot{{.*}}Remark="'night' (25 %): {{[0-9.]+}} ms"

// What an entry of the file leaves out is as in the workload.
// JSON: {"name":"day","weight":3.0},
// JSON: {"name":"night","weight":1.0,"features":[{"feature":"a_id","mean_pooling":12.0,"p99_pooling":20.0,"presence":1.0},{"feature":"b_id","mean_pooling":1.0,"p99_pooling":0.0,"presence":0.0}],"tables":[{"table":"a","access":{{{"batch":64,"reuse":\[1.0,.*}}}}]}

//--- workload.json
{
  "schema": "neuroshard.workload.v1",
  "batch": {"global_size": 64},
  "topology": "2xCPU",
  "tables": [{"name": "a", "rows": 1000, "dim": 16}, {"name": "b", "rows": 500, "dim": 8}],
  "features": [
    {"name": "a_id", "table": "a", "mean_pooling": 4},
    {"name": "b_id", "table": "b"}
  ],
  "snapshots": [
    {"name": "day", "weight": 3},
    {"name": "night",
     "features": [{"feature": "a_id", "mean_pooling": 12, "p99_pooling": 20},
                  {"feature": "b_id", "presence": 0}],
     "tables": [{"table": "a", "access": {"batch": 64,
       "reuse": [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}]}
  ]
}

//--- invalid.mlir
!ids = !neuroshard.jagged<["x"], i64>
// expected-error@+1 {{'neuroshard.planning' has an unusable value for 'feature': "y"}}
module attributes {neuroshard.batch = 64 : i64, neuroshard.planning = {
    snapshots = [{name = "day", features = [{feature = "y", stats = #neuroshard.feature<mean = 2.0>}]}]}} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @f(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "x"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}

// -----

!ids = !neuroshard.jagged<["x"], i64>
// expected-error@+1 {{'neuroshard.planning' has an unusable value for 'stats': #neuroshard.feature<mean = 2.000000e+00, batch = 7>}}
module attributes {neuroshard.batch = 64 : i64, neuroshard.planning = {
    snapshots = [{name = "day", features = [{feature = "x", stats = #neuroshard.feature<mean = 2.0, batch = 7>}]}]}} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @f(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "x"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}
