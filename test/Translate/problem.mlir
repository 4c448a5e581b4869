// Everything a workload can say survives the way into the IR and back.
// RUN: split-file %s %t
// RUN: neuroshard-translate --workload-to-mlir %t/all.json -o %t/all.mlir
// RUN: FileCheck %s < %t/all.mlir
// RUN: neuroshard-opt %t/all.mlir -o /dev/null
// RUN: neuroshard-translate --mlir-to-workload %t/all.mlir -o %t/again.json
// RUN: diff %t/all.json %t/again.json
// RUN: neuroshard-translate --workload-to-mlir %t/again.json -o %t/again.mlir
// RUN: diff %t/all.mlir %t/again.mlir
//
// Types that no lookup can tell.
// RUN: neuroshard-translate --workload-to-mlir %t/tables.json -o %t/tables.mlir
// RUN: FileCheck %s --check-prefix=TABLES < %t/tables.mlir
// RUN: neuroshard-translate --mlir-to-workload %t/tables.mlir | diff %t/tables.json -
//
// A topology can be added on the way.
// RUN: neuroshard-translate --workload-to-mlir --topology=4xCPU@2GiB %t/tables.json \
// RUN:   | FileCheck %s --check-prefix=TOPOLOGY
//
// Also that of a file, with the reserves of its devices.
// RUN: neuroshard-translate --workload-to-mlir --topology=%t/all.json %t/tables.json \
// RUN:   | FileCheck %s --check-prefix=FILE

// CHECK:      !ids = !neuroshard.jagged<["f0", "f1", "f2"], i32, weighted>
// CHECK:      !ids1 = !neuroshard.jagged<["f3"], i32>
// CHECK:      module attributes {neuroshard.batch = 4096 : i64, neuroshard.planning = {
// CHECK-SAME:   backwards = 4 : i64, cache_load_factor = 2.500000e-01 : f64
// CHECK-SAME:   co_locate = {{\[}}[@b, @cluster]]
// CHECK-SAME:   dense_reserve_bytes = 1000 : i64
// CHECK-SAME:   forbid = [{devices = array<i64: 0, 5>, table = @b}]
// CHECK-SAME:   fragmentation_reserve_bytes = 0 : i64
// CHECK-SAME:   input_copies = 3 : i64
// CHECK-SAME:   memory_model = "weights_only"
// CHECK-SAME:   optimizer_semantics = "per_shard"
// CHECK-SAME:   separate = {{\[}}[@a, @b]]
// CHECK-SAME:   source = "by hand"
// CHECK-SAME:   tables = [{allowed_kinds = ["row_wise", "column_wise"], min_width = 16 : i64, table = @a}]
// CHECK-SAME:   target = "torchrec-1.9"
// CHECK-SAME:   wire_type = "bf16/f32"
// The name @cluster is a table's.
// CHECK:      neuroshard.topology @cluster_0
// CHECK-SAME:   devices [#neuroshard.devices<4 x "H200", memory = 100000000000>, #neuroshard.devices<2 x "A100-40GB", host = 1, memory = 30000000000, fragmentation_reserve = 3000>]
// CHECK-SAME:   levels [#neuroshard.level<"network", groups = [6], bandwidth = 2.250000e+01, latency = 3.000000e+01>, #neuroshard.level<"node", groups = [4, 2], bandwidth = 3.500000e+02, latency = 1.500000e+01>]
// CHECK-SAME:   host_memory [2000000000, 1000000000]
// CHECK-SAME:   host_disks [#neuroshard.disk<bytes = 3000000000, reads = 5.000000e+05, bandwidth = 7.500000e+00>, #neuroshard.disk<>]
// CHECK-NEXT: neuroshard.table private @a : 1000 x 64 x bf16
// CHECK-SAME:   access = #neuroshard.access<batch = 4096, reuse = [5.000000e-01, 2.500000e-01, {{.*}}], row_mass = [1.000000e-02, 4.000000e-01, 1.000000e-01, 8.000000e-01]>
// CHECK-SAME:   hashed
// CHECK-SAME:   optimizer = #neuroshard.optimizer<adam, eps = 9.9999999999999995E-8, beta1 = 8.000000e-01, weight_decay = 1.000000e-02>
// CHECK-NEXT: neuroshard.table private @b : 77 x 6 x f32 {optimizer = #neuroshard.optimizer<sgd>}
// CHECK-NEXT: neuroshard.table private @cluster : 10 x 4 x f16
// CHECK-SAME:   initial_accumulator = 1.000000e-01
// CHECK-NEXT: neuroshard.plan @plan on @cluster_0 semantics per_shard {
// CHECK-NEXT:   neuroshard.pin @b on [1, 2]
// CHECK-NEXT:   neuroshard.shard "a left" of @a rows [0, 1000) cols [0, 32) on [3]
// CHECK-NEXT:   neuroshard.shard "a corner" of @a rows [0, 500) cols [32, 64) on [0] tier dram
// CHECK-NEXT: }
// One argument for each batch size, with weights if a lookup reads them, in the order of the features.
// CHECK-NEXT: func.func @forward(%arg0: !ids, %arg1: !ids1) -> (tensor<?x64xf16>, tensor<?x6xf16>, tensor<?x4xf16>, tensor<?x6xf16>)
// CHECK-NEXT:   %0 = neuroshard.lookup mean @a[%arg0, "f0"] {stats = #neuroshard.feature<mean = 3.500000e+00, p99 = 2.000000e+01, presence = 9.000000e-01>}
// CHECK-NEXT:   %1 = neuroshard.lookup sum @b[%arg0, "f1"] weighted {stats = #neuroshard.feature<mean = 1.000000e+00, weight_gradient>}
// CHECK-NEXT:   %2 = neuroshard.lookup unpooled @cluster[%arg0, "f2"] {{.*}} -> tensor<?x4xf16>
// CHECK-NEXT:   %3 = neuroshard.lookup sum @b[%arg1, "f3"] {stats = #neuroshard.feature<mean = 1.000000e+00, batch = 100>}
// CHECK-NEXT:   return %0, %1, %2, %3

// TABLES: neuroshard.planning = {id_type = "i32", output_type = "f16"}
// TABLES: func.func @forward() {

// FILE: #neuroshard.devices<2 x "A100-40GB", host = 1, memory = 30000000000, fragmentation_reserve = 3000>
// TOPOLOGY: neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU", memory = 2147483648>]

//--- tables.json
{
 "schema": "neuroshard.workload.v1",
 "batch": {
  "global_size": 8,
  "id_type": "i32",
  "output_type": "f16",
  "wire_type": "f32",
  "input_copies": 2
 },
 "memory_model": "full",
 "target": "native",
 "optimizer_semantics": "exact",
 "tables": [
  {"name":"unread","rows":8,"dim":4,"type":"f32","optimizer":"sgd"}
 ],
 "features": []
}
//--- all.json
{
 "schema": "neuroshard.workload.v1",
 "source": "by hand",
 "batch": {
  "global_size": 4096,
  "id_type": "i32",
  "output_type": "f16",
  "wire_type": "bf16/f32",
  "input_copies": 3,
  "backwards": 4
 },
 "memory_model": "weights_only",
 "target": "torchrec-1.9",
 "optimizer_semantics": "per_shard",
 "cache_load_factor": 0.25,
 "constraints": {
  "pins": [{"table":"b","devices":[1,2]}],
  "forbids": [{"table":"b","devices":[0,5]}],
  "co_locate": [["b","cluster"]],
  "separate": [["a","b"]],
  "tables": [{"table":"a","allowed_kinds":["row_wise","column_wise"],"min_width":16}],
  "reserves": {"dense_bytes":1000,"fragmentation_bytes":0},
  "fixed_shards": [{"name":"a left","table":"a","rows":[0,1000],"cols":[0,32],"devices":[3],"tier":"hbm"},{"name":"a corner","table":"a","rows":[0,500],"cols":[32,64],"devices":[0],"tier":"dram"}]
 },
 "topology": {
  "levels": [{"name":"network","groups":[6],"bandwidth_gb_per_s":22.5,"latency_us":30.0},{"name":"node","groups":[4,2],"bandwidth_gb_per_s":350.0,"latency_us":15.0}],
  "hosts": [{"memory_bytes":2000000000,"disk":{"bytes":3000000000,"reads_per_second":500000.0,"bandwidth_gb_per_s":7.5}},{"memory_bytes":1000000000}],
  "devices": [{"class":"H200","memory_bytes":100000000000,"host":0},{"class":"H200","memory_bytes":100000000000,"host":0},{"class":"H200","memory_bytes":100000000000,"host":0},{"class":"H200","memory_bytes":100000000000,"host":0},{"class":"A100-40GB","memory_bytes":30000000000,"host":1,"reserves":{"fragmentation_bytes":3000}},{"class":"A100-40GB","memory_bytes":30000000000,"host":1,"reserves":{"fragmentation_bytes":3000}}]
 },
 "tables": [
  {"name":"a","rows":1000,"dim":64,"type":"bf16","optimizer":{"kind":"adam","eps":1e-07,"beta1":0.8,"weight_decay":0.01},"hashed":true,"access":{"batch":4096,"reuse":[0.5,0.25,0.125,0.125,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0],"row_mass":[{"row_share":0.01,"lookup_share":0.4},{"row_share":0.1,"lookup_share":0.8}]}},
  {"name":"b","rows":77,"dim":6,"type":"f32","optimizer":"sgd"},
  {"name":"cluster","rows":10,"dim":4,"type":"f16","optimizer":{"kind":"adagrad","initial_accumulator":0.1}}
 ],
 "features": [
  {"name":"f0","table":"a","pooling":"mean","mean_pooling":3.5,"p99_pooling":20.0,"presence":0.9},
  {"name":"f1","table":"b","pooling":"sum","mean_pooling":1.0,"weighted":true,"needs_weight_gradient":true},
  {"name":"f2","table":"cluster","pooling":"none","mean_pooling":1.0},
  {"name":"f3","table":"b","pooling":"sum","mean_pooling":1.0,"batch":100}
 ]
}
