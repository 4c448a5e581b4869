// A wrong plan gets one error that names the file, the shard and the rule, and exit code 1.
// DEFINE: %{name} =
// DEFINE: %{refuse} = \
// DEFINE:   not neuroshard-translate --json-to-plan --module=%t/tables.mlir %t/%{name}.json -o %t/out.mlir 2> %t/%{name}.log && \
// DEFINE:   FileCheck %s --check-prefix=%{name} --implicit-check-not=error: < %t/%{name}.log
// RUN: split-file %s %t
// RUN: neuroshard-translate --json-to-plan --module=%t/tables.mlir %t/GOOD.json -o %t/out.mlir

// REDEFINE: %{name} = TRUNCATED
// RUN: %{refuse}
// TRUNCATED: TRUNCATED.json:4:1: error: json: parse error {{.*}}unexpected end of input

// REDEFINE: %{name} = UNKNOWN_FIELD
// RUN: %{refuse}
// UNKNOWN_FIELD: error: shards[0].colour: unknown field

// REDEFINE: %{name} = SCHEMA
// RUN: %{refuse}
// SCHEMA: error: schema: expected 'neuroshard.plan.v1', got: 'neuroshard.workload.v1'

// REDEFINE: %{name} = UNALIGNED
// RUN: %{refuse}
// UNALIGNED: error: shard 'left': inner column boundary must be a multiple of 4, got: 6

// REDEFINE: %{name} = OVERLAP
// RUN: %{refuse}
// OVERLAP: error: table 'a': shards 'top' (rows [0, 51) cols [0, 8)) and 'low' (rows [50, 100) cols [0, 8)) overlap

// REDEFINE: %{name} = MISSING_ROWS
// RUN: %{refuse}
// MISSING_ROWS: error: table 'a': no shard covers rows [49, 50) cols [0, 8)

// REDEFINE: %{name} = DEVICES
// RUN: %{refuse}
// DEVICES: error: plan: made for 4 devices, the topology has 2

// REDEFINE: %{name} = OTHER_TABLES
// RUN: %{refuse}
// OTHER_TABLES: error: plan: made for other tables: their fingerprint is fnv1a64:0000000000000000

// REDEFINE: %{name} = UNKNOWN_TABLE
// RUN: %{refuse}
// UNKNOWN_TABLE: error: shard 'z': unknown table 'z'

// REDEFINE: %{name} = MEMORY
// RUN: %{refuse}
// MEMORY: error: device 1: needs 3.1 KiB

// A plan may not move what the module has written by hand, nor leave it out.
// RUN: not neuroshard-translate --json-to-plan --module=%t/moved.mlir %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=MOVED --implicit-check-not=error:
// MOVED: error: 'neuroshard.shard' op differs from the shard of the same name in the plan to be written
// RUN: not neuroshard-translate --json-to-plan --module=%t/left.mlir %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=LEFT --implicit-check-not=error:
// LEFT: error: 'neuroshard.shard' op is not in the plan to be written, which must keep it
// RUN: not neuroshard-translate --json-to-plan --module=%t/pinned.mlir %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=PINNED --implicit-check-not=error:
// PINNED: error: {{.*}}pin

// Options and modules.
// RUN: not neuroshard-translate --json-to-plan %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=NO_MODULE --implicit-check-not=error:
// NO_MODULE: error: --json-to-plan needs the tables of the plan: --module=FILE.mlir
// RUN: not neuroshard-translate --json-to-plan --module=%t/absent.mlir %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: absent.mlir
// RUN: not neuroshard-translate --json-to-plan --module=%t/nodevices.mlir %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=NO_DEVICES --implicit-check-not=error:
// NO_DEVICES: error: a plan needs a topology; add a 'neuroshard.topology' or --topology=8xH200
// RUN: not neuroshard-translate --plan-to-json %t/tables.mlir 2>&1 | FileCheck %s --check-prefix=NO_PLAN --implicit-check-not=error:
// NO_PLAN: error: the module has no plan
// RUN: not neuroshard-translate --plan-to-json %t/provenance.mlir 2>&1 | FileCheck %s --check-prefix=PROVENANCE --implicit-check-not=error:
// PROVENANCE: error: provenance has an unknown or unusable entry 'seed': "three"
// RUN: not neuroshard-translate --mlir-to-workload %t/tables.mlir 2>&1 | FileCheck %s --check-prefix=NO_BATCH --implicit-check-not=error:
// NO_BATCH: error: batch.global_size: expected a whole number in [1, {{[0-9]+}}], got: 0

//--- tables.mlir
module attributes {neuroshard.planning = {memory_model = "weights_only"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<1 x "CPU">, #neuroshard.devices<1 x "CPU", memory = 1000>]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 100 x 8 x f32
}
//--- moved.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 100 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "a" of @a rows [0, 100) cols [0, 8) on [1]
  }
}
//--- left.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 100 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "mine" of @a rows [0, 100) cols [0, 8) on [1]
  }
}
//--- pinned.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table private @a : 100 x 8 x f32
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.pin @a on [1]
  }
}
//--- nodevices.mlir
neuroshard.table private @a : 100 x 8 x f32
//--- provenance.mlir
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.plan @plan on @cluster semantics exact provenance {seed = "three"} {}
}
//--- GOOD.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0]}]}
//--- TRUNCATED.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100],
             "cols": [0, 8
//--- UNKNOWN_FIELD.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0], "colour": 3}]}
//--- SCHEMA.json
{"schema": "neuroshard.workload.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0]}]}
//--- UNALIGNED.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "left", "table": "a", "rows": [0, 100], "cols": [0, 6], "devices": [0]},
            {"name": "right", "table": "a", "rows": [0, 100], "cols": [6, 8], "devices": [0]}]}
//--- OVERLAP.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "top", "table": "a", "rows": [0, 51], "cols": [0, 8], "devices": [0]},
            {"name": "low", "table": "a", "rows": [50, 100], "cols": [0, 8], "devices": [0]}]}
//--- MISSING_ROWS.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "top", "table": "a", "rows": [0, 49], "cols": [0, 8], "devices": [0]},
            {"name": "low", "table": "a", "rows": [50, 100], "cols": [0, 8], "devices": [0]}]}
//--- DEVICES.json
{"schema": "neuroshard.plan.v1", "device_count": 4,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0]}]}
//--- OTHER_TABLES.json
{"schema": "neuroshard.plan.v1", "device_count": 2, "table_fingerprint": "fnv1a64:0000000000000000",
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0]}]}
//--- UNKNOWN_TABLE.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [0]},
            {"name": "z", "table": "z", "rows": [0, 100], "cols": [0, 8], "devices": [0]}]}
//--- MEMORY.json
{"schema": "neuroshard.plan.v1", "device_count": 2,
 "shards": [{"name": "a", "table": "a", "rows": [0, 100], "cols": [0, 8], "devices": [1]}]}
