// A wrong workload gets one error that names the file, the place and the rule, and exit code 1.
// DEFINE: %{name} =
// DEFINE: %{refuse} = \
// DEFINE:   not neuroshard-translate --workload-to-mlir %t/%{name}.json -o %t/out.mlir 2> %t/%{name}.log && \
// DEFINE:   FileCheck %s --check-prefix=%{name} --implicit-check-not=error: < %t/%{name}.log
// RUN: split-file %s %t

// REDEFINE: %{name} = BAD_JSON
// RUN: %{refuse}
// BAD_JSON: BAD_JSON.json:2:12: error: json: parse error at line 2, column 12:

// REDEFINE: %{name} = TRUNCATED
// RUN: %{refuse}
// TRUNCATED: TRUNCATED.json:5:1: error: json: parse error {{.*}}unexpected end of input

// REDEFINE: %{name} = EMPTY
// RUN: %{refuse}
// EMPTY: EMPTY.json:1:1: error: json: {{.*}}unexpected end of input

// REDEFINE: %{name} = NOT_AN_OBJECT
// RUN: %{refuse}
// NOT_AN_OBJECT: error: {{.*}}expected an object, got: array

// REDEFINE: %{name} = SCHEMA
// RUN: %{refuse}
// SCHEMA: error: schema: expected 'neuroshard.workload.v1', got: 'neuroshard.plan.v1'

// REDEFINE: %{name} = UNKNOWN_FIELD
// RUN: %{refuse}
// UNKNOWN_FIELD: error: tables[0].colour: unknown field

// REDEFINE: %{name} = NEGATIVE_ROWS
// RUN: %{refuse}
// NEGATIVE_ROWS: error: tables[0].rows: expected a whole number in [1, {{[0-9]+}}], got: -5

// JSON has no NaN.
// REDEFINE: %{name} = NAN
// RUN: %{refuse}
// NAN: NAN.json:3:{{[0-9]+}}: error: json: parse error

// REDEFINE: %{name} = HISTOGRAM
// RUN: %{refuse}
// HISTOGRAM: error: tables[0].access.reuse: the shares must add up to 1, got: 2

// REDEFINE: %{name} = TABLE
// RUN: %{refuse}
// TABLE: error: features[0].table: unknown table 'b'

// Several errors are one, with notes.
// REDEFINE: %{name} = SEVERAL
// RUN: %{refuse}
// SEVERAL: error: tables[0].rows: expected a whole number
// SEVERAL: note: tables[0].dim: expected a whole number
// SEVERAL: note: batch.global_size: expected a whole number

// An unknown name is no reason to be silent about the rest.
// REDEFINE: %{name} = WITH_UNKNOWN
// RUN: %{refuse}
// WITH_UNKNOWN: error: features[0].table: unknown table 'usr'
// WITH_UNKNOWN: note: constraints.co_locate[0][1]: unknown table 'itm'
// WITH_UNKNOWN: note: tables[1].name: names must be unique
// WITH_UNKNOWN: note: tables[1].rows: expected a whole number
// WITH_UNKNOWN: note: features[0].mean_pooling: expected a number
// WITH_UNKNOWN: note: batch.global_size: expected a whole number
// WITH_UNKNOWN: note: constraints.tables[0].min_width: expected a whole number
// WITH_UNKNOWN-NOT: note:

// REDEFINE: %{name} = PIN
// RUN: %{refuse}
// PIN: error: constraints: pins and forbids of table 'a' leave none of the 2 devices; relax one of them

// REDEFINE: %{name} = UNALIGNED
// RUN: %{refuse}
// UNALIGNED: error: constraints.fixed_shards[0]: inner column boundary must be a multiple of 4, got: 6

// REDEFINE: %{name} = OVERLAP
// RUN: %{refuse}
// OVERLAP: error: table 'a': shards 's' (rows [0, 5) cols [0, 4)) and 't' (rows [4, 5) cols [0, 8)) overlap

// REDEFINE: %{name} = NO_TOPOLOGY
// RUN: %{refuse}
// NO_TOPOLOGY: NO_TOPOLOGY.json:1:0: error: constraints: pins and fixed shards name devices, and the workload has no topology; add one

// The dialect has no weighted mean.
// REDEFINE: %{name} = WEIGHTED_MEAN
// RUN: %{refuse}
// WEIGHTED_MEAN: WEIGHTED_MEAN.json:1:0: error: {{.*}}per-sample weights are defined for 'sum' only, got: 'mean'

// Options.
// RUN: not neuroshard-translate --workload-to-mlir --topology=9xAbacus %t/GOOD.json 2>&1 | FileCheck %s --check-prefix=CLASS --implicit-check-not=error:
// CLASS: error: topology: {{.*}}Abacus
// RUN: not neuroshard-translate --workload-to-mlir %t/absent.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: cannot open input file '{{.*}}absent.json'
// RUN: not neuroshard-translate --workload-to-mlir --topology=2xCPU %t/TWO.json 2>&1 | FileCheck %s --check-prefix=TWO --implicit-check-not=error:
// TWO: error: topology: the workload has a topology, and --topology gives another

//--- BAD_JSON.json
{"schema": "neuroshard.workload.v1",
 "batch": {,
}
//--- TRUNCATED.json
{"schema": "neuroshard.workload.v1",
 "batch": {"global_size": 8},
 "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "features": [{"name": "f",
//--- EMPTY.json
//--- NOT_AN_OBJECT.json
[]
//--- SCHEMA.json
{"schema": "neuroshard.plan.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}], "features": []}
//--- UNKNOWN_FIELD.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4, "colour": "blue"}], "features": []}
//--- NEGATIVE_ROWS.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": -5, "dim": 4}], "features": []}
//--- NAN.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8},
 "tables": [{"name": "a", "rows": 5, "dim": 4,
             "access": {"batch": 8, "reuse": [NaN,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}], "features": []}
//--- HISTOGRAM.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8},
 "tables": [{"name": "a", "rows": 5, "dim": 4,
             "access": {"batch": 8, "reuse": [1,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}}], "features": []}
//--- TABLE.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "features": [{"name": "f", "table": "b"}]}
//--- SEVERAL.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 0}, "tables": [{"name": "a", "rows": 0, "dim": -4}], "features": []}
//--- WITH_UNKNOWN.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 0}, "topology": "2xCPU",
 "tables": [{"name": "a", "rows": 5, "dim": 4}, {"name": "a", "rows": 0, "dim": 4}],
 "features": [{"name": "f", "table": "usr", "mean_pooling": -3}],
 "constraints": {"co_locate": [["a", "itm"]], "tables": [{"table": "a", "min_width": 0}]}}
//--- PIN.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "topology": "2xCPU", "features": [],
 "constraints": {"pins": [{"table": "a", "devices": [0]}], "forbids": [{"table": "a", "devices": [0]}]}}
//--- UNALIGNED.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 8}],
 "topology": "2xCPU", "features": [],
 "constraints": {"fixed_shards": [{"name": "s", "table": "a", "rows": [0, 5], "cols": [0, 6], "devices": [0]}]}}
//--- OVERLAP.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 8}],
 "topology": "2xCPU", "features": [],
 "constraints": {"fixed_shards": [{"name": "s", "table": "a", "rows": [0, 5], "cols": [0, 4], "devices": [0]},
                                  {"name": "t", "table": "a", "rows": [4, 5], "cols": [0, 8], "devices": [1]}]}}
//--- NO_TOPOLOGY.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "features": [], "constraints": {"pins": [{"table": "a", "devices": [0]}]}}
//--- WEIGHTED_MEAN.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "features": [{"name": "f", "table": "a", "pooling": "mean", "weighted": true}]}
//--- GOOD.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}], "features": []}
//--- TWO.json
{"schema": "neuroshard.workload.v1", "batch": {"global_size": 8}, "tables": [{"name": "a", "rows": 5, "dim": 4}],
 "topology": "2xCPU", "features": []}
