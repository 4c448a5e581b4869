// 2002 tables, one of 2e9 rows, on 256 devices: a plan of 10,268 shards goes both ways, and a
// module with it through neuroshard-plan and down to the partitioned level, with the verifier of
// each level between, in 2 s and 1 GiB together.
// RUN: %python %S/../Inputs/generate_plan.py %S/../../workloads/synthetic_colossal.json --devices 256 > %t.json
// RUN: grep -c '"table":' %t.json | FileCheck %s --check-prefix=SHARDS
// RUN: %python %S/../Inputs/within.py --seconds 2 --mib 1024 \
// RUN:   -- neuroshard-translate --workload-to-mlir --topology=256xH200@192GiB %S/../../workloads/synthetic_colossal.json -o %t.mlir \
// RUN:   -- neuroshard-translate --json-to-plan --module=%t.mlir %t.json -o %t.planned.mlir \
// RUN:   -- neuroshard-translate --plan-to-json %t.planned.mlir -o %t.again.json \
// RUN:   -- neuroshard-opt-raw %t.planned.mlir --neuroshard-plan -o %t.kept.mlir \
// RUN:   -- neuroshard-opt-raw %t.planned.mlir --neuroshard-to-partitioned=training=true -o %t.partitioned.mlir
// RUN: diff %t.json %t.again.json
// RUN: neuroshard-opt %t.planned.mlir -o %t.printed.mlir
// RUN: diff %t.kept.mlir %t.printed.mlir
// RUN: FileCheck %s < %t.planned.mlir
// RUN: FileCheck %s --check-prefix=PARTITIONED < %t.partitioned.mlir

// SHARDS: 10268

// CHECK:     neuroshard.topology @cluster devices [#neuroshard.devices<8 x "H200", memory = 206158430208>,
// CHECK:     neuroshard.table private @[[BIG:.*]] : 2000000000 x 256 x f32
// CHECK:     neuroshard.plan @plan on @cluster semantics exact {
// CHECK:       neuroshard.shard "[[BIG]]_0" of @[[BIG]] rows [0, 15625000) cols [0, 64) on [{{[0-9]+}}]

// PARTITIONED: neuroshard.device_program @
// PARTITIONED: func.func @embeddings_update(%{{.*}}: !neuroshard.device
