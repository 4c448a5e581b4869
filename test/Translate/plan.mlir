// A plan goes from JSON into the IR and back without a change, and so does a plan op.
// RUN: split-file %s %t
// RUN: neuroshard-translate --json-to-plan --module=%t/tables.mlir %t/plan.json -o %t/planned.mlir
// RUN: FileCheck %s < %t/planned.mlir
// RUN: neuroshard-opt %t/planned.mlir -o /dev/null
// RUN: neuroshard-translate --plan-to-json %t/planned.mlir | diff %t/plan.json -
//
// Pins and shards that the module has stay; here all that is missing comes from the plan.
// RUN: neuroshard-translate --json-to-plan --module=%t/partial.mlir %t/plan.json \
// RUN:   | FileCheck %s --check-prefix=PARTIAL
//
// By hand: no provenance.
// RUN: neuroshard-translate --plan-to-json --plan-name=mine %t/byhand.mlir -o %t/byhand.json
// RUN: FileCheck %s --check-prefix=BYHAND < %t/byhand.json
// RUN: neuroshard-translate --json-to-plan --module=%t/nodevices.mlir --topology=2xCPU \
// RUN:     --plan-name=mine %t/byhand.json -o %t/again.mlir
// RUN: neuroshard-translate --plan-to-json %t/again.mlir | diff %t/byhand.json -
//
// Found by search.
// RUN: neuroshard-opt %t/tables.mlir --neuroshard-plan="batch=16 seed=3 semantics=per_shard deadline-s=60" \
// RUN:     -o %t/found.mlir
// RUN: neuroshard-translate --plan-to-json %t/found.mlir -o %t/found.json
// RUN: sed -e '/neuroshard.plan @/,/^  }/d' %t/found.mlir > %t/unplanned.mlir
// RUN: neuroshard-translate --json-to-plan --module=%t/unplanned.mlir %t/found.json \
// RUN:   | neuroshard-opt | diff %t/found.mlir -

// CHECK:      neuroshard.plan @plan on @cluster semantics per_shard provenance {
// CHECK-SAME:   algorithm = "default", cost_model = "roofline", lower_bound_ms = 1.000000e-01 : f64,
// CHECK-SAME:   objective = "step", predicted_cost_ms = 0.30000000000000004 : f64, seed = 18446744073709551615 : ui64,
// CHECK-SAME:   settings = {{\[}}["zeal", "11"], ["care", "a \22 b"]], table_fingerprint = "fnv1a64:
// CHECK-NEXT:   neuroshard.shard "a/1" of @a rows [0, 1000) cols [60, 64) on [1]
// CHECK-NEXT:   neuroshard.shard "a/0" of @a rows [0, 1000) cols [0, 60) on [0]
// CHECK-NEXT:   neuroshard.shard "b" of @b rows [0, 10) cols [0, 6) on [0, 1]
// CHECK-NEXT: }

// PARTIAL:      neuroshard.plan @partial on @cluster semantics per_shard provenance
// PARTIAL-NEXT:   neuroshard.pin @b on [0, 1]
// PARTIAL-NEXT:   neuroshard.shard "a/1" of @a rows [0, 1000) cols [60, 64) on [1]
// PARTIAL-NEXT:   neuroshard.shard "a/0" of @a rows [0, 1000) cols [0, 60) on [0]
// PARTIAL-NEXT:   neuroshard.shard "b" of @b

// BYHAND:      "optimizer_semantics": "exact",
// BYHAND-NEXT: "shards": [

//--- tables.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @b : 10 x 6 x f32 {optimizer = #neuroshard.optimizer<sgd>}
}
//--- nodevices.mlir
neuroshard.table private @a : 100 x 8 x f32
//--- partial.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @b : 10 x 6 x f32 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.plan @partial on @cluster semantics per_shard {
    neuroshard.shard "a/0" of @a rows [0, 1000) cols [0, 60) on [0]
    neuroshard.pin @b on [0, 1]
  }
}
//--- byhand.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 100 x 8 x f32
  neuroshard.plan @mine on @cluster semantics exact {
    neuroshard.shard "a" of @a rows [0, 100) cols [0, 8) on [1]
  }
  neuroshard.plan @other on @cluster semantics exact {}
}
//--- plan.json
{
 "schema": "neuroshard.plan.v1",
 "device_count": 2,
 "optimizer_semantics": "per_shard",
 "table_fingerprint": "fnv1a64:19f01b65a08fb947",
 "provenance": {
  "algorithm": "default",
  "objective": "step",
  "cost_model": "roofline",
  "predicted_cost_ms": 0.30000000000000004,
  "lower_bound_ms": 0.1,
  "seed": 18446744073709551615,
  "settings": [{"name":"zeal","value":"11"},{"name":"care","value":"a \" b"}]
 },
 "shards": [
  {"name":"a/1","table":"a","rows":[0,1000],"cols":[60,64],"devices":[1],"tier":"hbm"},
  {"name":"a/0","table":"a","rows":[0,1000],"cols":[0,60],"devices":[0],"tier":"hbm"},
  {"name":"b","table":"b","rows":[0,10],"cols":[0,6],"devices":[0,1],"tier":"hbm"}
 ]
}
