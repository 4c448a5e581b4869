// The tiers of tables survive the way into the IR and back.
// RUN: split-file %s %t
// RUN: neuroshard-translate --workload-to-mlir %t/tiers.json -o %t/tiers.mlir
// RUN: FileCheck %s < %t/tiers.mlir
// RUN: neuroshard-translate --mlir-to-workload %t/tiers.mlir | diff %t/tiers.json -
// RUN: sed 's/"ssd"/"tape"/' %t/tiers.mlir | not neuroshard-translate --mlir-to-workload 2>&1 \
// RUN:   | FileCheck %s --check-prefix=TAPE

// CHECK: tables = [{cache_share = 2.500000e-01 : f64, min_width = 1 : i64, table = @a, tier = "ssd"}]
// TAPE: "dram" or "ssd"

//--- tiers.json
{
 "schema": "neuroshard.workload.v1",
 "batch": {
  "global_size": 8,
  "id_type": "i64",
  "output_type": "f32",
  "wire_type": "f32",
  "input_copies": 2
 },
 "memory_model": "full",
 "target": "native",
 "optimizer_semantics": "exact",
 "constraints": {
  "tables": [{"table":"a","min_width":1,"cache_share":0.25,"tier":"ssd"}]
 },
 "tables": [
  {"name":"a","rows":8,"dim":4,"type":"f32","optimizer":"sgd"}
 ],
 "features": []
}
