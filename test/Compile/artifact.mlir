// An artifact has a manifest, the plan, one library per distinct program, and what was
// asked for beside.

// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a --training --reference --emit-ir
// RUN: ls %t | count 1
// RUN: ls %t/a | FileCheck %s --check-prefix=FILES
// RUN: ls %t/a/ir | FileCheck %s --check-prefix=IR
// RUN: FileCheck %s --check-prefix=MANIFEST --input-file=%t/a/manifest.json
// RUN: FileCheck %s --check-prefix=PLAN --input-file=%t/a/plan.json
// RUN: llvm-nm -D --defined-only %t/a/program0.so | FileCheck %s --check-prefix=PROGRAM
// RUN: llvm-nm -D --defined-only %t/a/reference.so | FileCheck %s --check-prefix=REFERENCE

// The plan that was written can be followed again.
// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/b --topology 4xCPU --plan %t/a/plan.json
// RUN: cmp %t/a/plan.json %t/b/plan.json

// FILES: ir
// FILES-NEXT: manifest.json
// FILES-NEXT: plan.json
// FILES-NEXT: program0.so
// FILES-NEXT: program1.so
// FILES-NEXT: program2.so
// FILES-NEXT: program3.so
// FILES-NEXT: reference.so
// IR: 1-logical.mlir
// IR-NEXT: 2-planned.mlir
// IR-NEXT: 3-sharded.mlir
// IR-NEXT: 4-partitioned.mlir
// IR-NEXT: program0-native.ll
// IR-NEXT: program0-native.mlir
// IR-NEXT: program0-native.o
// IR-NEXT: program0.mlir
// IR: reference.mlir

// MANIFEST: "schema": "neuroshard.manifest/7"
// MANIFEST: "devices": 4
// MANIFEST: "name": "users"
// MANIFEST: "rows": 100
// MANIFEST: "dim": 8
// MANIFEST: "kind": "adagrad"
// MANIFEST: "name": "items"
// MANIFEST: "element_type": "f16"
// MANIFEST: "kind": "rowwise_adagrad"
// MANIFEST: "optimizer_semantics": "exact"
// MANIFEST: "wire_type": "f32"
// MANIFEST: "exchanges": [
// MANIFEST: "id_type": "i64"
// MANIFEST: "pooling": "sum"
// MANIFEST: "padding_idx": null
// MANIFEST: "pooling": "mean"
// MANIFEST: "padding_idx": 0
// MANIFEST: "name": "users_0"
// MANIFEST: "library": "program0.so"
// MANIFEST: "bindings": [
// MANIFEST: "functions": {
// MANIFEST: "forward": {
// MANIFEST: "kind": "device"
// MANIFEST: "kind": "jagged"
// MANIFEST: "exchange": 0
// MANIFEST: "embeddings_update": {
// MANIFEST: "reference": {
// MANIFEST: "library": "reference.so"
// MANIFEST: "kind": "weights"

// PLAN: "schema": "neuroshard.plan.v1"

// PROGRAM-DAG: neuroshard_program
// PROGRAM-DAG: nsrt_invoke_embeddings_start
// PROGRAM-DAG: nsrt_invoke_embeddings_lookup
// PROGRAM-DAG: nsrt_invoke_embeddings_update
// PROGRAM-DAG: nsrt_invoke_embeddings_wait
// PROGRAM-DAG: nsrt_invoke_forward

// REFERENCE-NOT: neuroshard_program
// REFERENCE: nsrt_invoke_embeddings_update
