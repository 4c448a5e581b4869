// Dynamic ids and the mode survive the way into the IR and back.
// RUN: split-file %s %t
// RUN: neuroshard-translate --workload-to-mlir %t/dynamic.json -o %t/dynamic.mlir
// RUN: FileCheck %s < %t/dynamic.mlir
// RUN: neuroshard-translate --mlir-to-workload %t/dynamic.mlir | diff %t/dynamic.json -
// RUN: sed 's/candidates = 9/candidates = -9/' %t/dynamic.mlir | not neuroshard-translate --mlir-to-workload 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NEGATIVE

// CHECK: dynamic_ids = [{candidates = 9 : i64, table = @a}]
// CHECK-SAME: mode = "inference"
// NEGATIVE: id_candidates

//--- dynamic.json
{
 "schema": "neuroshard.workload.v1",
 "batch": {
  "global_size": 8,
  "id_type": "i64",
  "output_type": "f32",
  "wire_type": "f32",
  "input_copies": 2
 },
 "mode": "inference",
 "memory_model": "full",
 "target": "native",
 "optimizer_semantics": "exact",
 "tables": [
  {"name":"a","rows":8,"dim":4,"type":"f32","optimizer":"sgd","dynamic_ids":true,"id_candidates":9}
 ],
 "features": []
}
