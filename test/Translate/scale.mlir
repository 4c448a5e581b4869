// 2002 tables, one of 2e9 rows, on 256 devices: a plan of 10,268 shards goes both ways, and a
// module with it through neuroshard-plan and down to the partitioned level, with the verifier of
// each level between, and one program on to the runtime. Time grows with the input and not with its square: every fourth table
// on a quarter of the devices is what it is compared with. And 1 GiB is enough.
// RUN: %python %S/../Inputs/every_table.py %S/../../workloads/synthetic_colossal.json 1 > %t.256.workload.json
// RUN: %python %S/../Inputs/every_table.py %S/../../workloads/synthetic_colossal.json 4 > %t.64.workload.json
// RUN: %python %S/../Inputs/generate_plan.py %t.256.workload.json --devices 256 > %t.256.json
// RUN: %python %S/../Inputs/generate_plan.py %t.64.workload.json --devices 64 > %t.64.json
// RUN: grep -c '"table":' %t.256.json | FileCheck %s --check-prefix=SHARDS
// RUN: grep -c '"table":' %t.64.json | FileCheck %s --check-prefix=QUARTER
// RUN: %python %S/../Inputs/growth.py --sizes 64 256 --mib 1024 \
// RUN:   -- neuroshard-translate --workload-to-mlir --topology={}xH200@192GiB %t.{}.workload.json -o %t.{}.mlir \
// RUN:   -- neuroshard-translate --json-to-plan --module=%t.{}.mlir %t.{}.json -o %t.{}.planned.mlir \
// RUN:   -- neuroshard-translate --plan-to-json %t.{}.planned.mlir -o %t.{}.again.json \
// RUN:   -- neuroshard-opt-raw %t.{}.planned.mlir --neuroshard-plan -o %t.{}.kept.mlir \
// RUN:   -- neuroshard-opt-raw %t.{}.planned.mlir --neuroshard-to-partitioned=training=true -o %t.{}.partitioned.mlir
// RUN: %python %S/../Inputs/growth.py --sizes 64 256 --mib 1024 \
// RUN:   -- neuroshard-opt-raw %t.{}.partitioned.mlir --convert-neuroshard-to-runtime=program=program0 -o %t.{}.runtime.mlir
// RUN: diff %t.256.json %t.256.again.json
// RUN: neuroshard-opt %t.256.planned.mlir -o %t.printed.mlir
// RUN: diff %t.256.kept.mlir %t.printed.mlir
// RUN: FileCheck %s < %t.256.planned.mlir
// RUN: FileCheck %s --check-prefix=PARTITIONED < %t.256.partitioned.mlir

// SHARDS: 10268
// QUARTER: 2391

// CHECK:     neuroshard.topology @cluster devices [#neuroshard.devices<8 x "H200", memory = 206158430208>,
// CHECK:     neuroshard.table private @[[BIG:.*]] : 2000000000 x 256 x f32
// CHECK:     neuroshard.plan @plan on @cluster semantics exact {
// CHECK:       neuroshard.shard "[[BIG]]_0" of @[[BIG]] rows [0, 15625000) cols [0, 64) on [{{[0-9]+}}]

// PARTITIONED: neuroshard.device_program @
// PARTITIONED: func.func @embeddings_update(%{{.*}}: !neuroshard.device
