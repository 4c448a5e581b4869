// Features of one batch are one input, of which lookups read the weights that they need.
// RUN: split-file %s %t
// RUN: neuroshard-translate --workload-to-mlir %t/serving.json -o %t/serving.mlir
// RUN: FileCheck %s < %t/serving.mlir
// RUN: neuroshard-translate --mlir-to-workload %t/serving.mlir | diff %t/serving.json -
// RUN: sed 's/"mode": "inference",//' %t/serving.json | neuroshard-translate --workload-to-mlir \
// RUN:   | FileCheck %s

// CHECK: !ids = !neuroshard.jagged<["f0", "f1", "f2"], i64, weighted>
// CHECK-NOT: !ids1
// CHECK: neuroshard.lookup sum @a[%{{.*}}, "f0"] {
// CHECK: neuroshard.lookup sum @a[%{{.*}}, "f1"] weighted
// CHECK: neuroshard.lookup mean @a[%{{.*}}, "f2"] {

//--- serving.json
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
  {"name":"a","rows":8,"dim":4,"type":"f32","optimizer":"sgd"}
 ],
 "features": [
  {"name":"f0","table":"a","pooling":"sum","mean_pooling":1.0},
  {"name":"f1","table":"a","pooling":"sum","mean_pooling":1.0,"weighted":true},
  {"name":"f2","table":"a","pooling":"mean","mean_pooling":1.0}
 ]
}
