// What the planner sees of lookups written by hand, wherever they are.
// RUN: neuroshard-translate --mlir-to-workload %s | FileCheck %s

// One i64 input makes the ids i64, one f32 result the results f32.
// CHECK:      "global_size": 32,
// CHECK-NEXT: "id_type": "i64",
// CHECK-NEXT: "output_type": "f32",
// CHECK:      "tables": [
// CHECK-NEXT:   {"name":"a","rows":100,"dim":8,"type":"bf16","optimizer":"sgd"},
// CHECK-NEXT:   {"name":"b","rows":10,"dim":4,"type":"f32","optimizer":"adam","hashed":true}
// Each lookup is a feature; names that come again are made unique.
// CHECK:      "features": [
// CHECK-NEXT:   {"name":"x","table":"a","pooling":"sum","mean_pooling":1.0},
// CHECK-NEXT:   {"name":"x@b","table":"b","pooling":"none","mean_pooling":2.0},
// CHECK-NEXT:   {"name":"y","table":"a","pooling":"mean","mean_pooling":1.0},
// CHECK-NEXT:   {"name":"x@a","table":"a","pooling":"sum","mean_pooling":1.0,"weighted":true},
// CHECK-NEXT:   {"name":"x@a#2","table":"a","pooling":"sum","mean_pooling":1.0}
// CHECK-NEXT: ]

!ids = !neuroshard.jagged<["x", "y"], i32>
!more = !neuroshard.jagged<["x"], i64, weighted>

module attributes {neuroshard.batch = 32 : i64} {
  neuroshard.table private @a : 100 x 8 x bf16
  neuroshard.table private @b : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<adam>, hashed}
  func.func @one(%ids: !ids) -> (tensor<?x8xf16>, tensor<?x4xf32>, tensor<?x8xbf16>) {
    %0 = neuroshard.lookup sum @a[%ids, "x"] : !ids -> tensor<?x8xf16>
    %1 = neuroshard.lookup unpooled @b[%ids, "x"] {stats = #neuroshard.feature<mean = 2.0>} : !ids -> tensor<?x4xf32>
    %2 = neuroshard.lookup mean @a[%ids, "y"] padding_idx 3 : !ids -> tensor<?x8xbf16>
    return %0, %1, %2 : tensor<?x8xf16>, tensor<?x4xf32>, tensor<?x8xbf16>
  }
  func.func @two(%ids: !more, %c: i1) -> tensor<?x8xf16> {
    %0 = scf.if %c -> tensor<?x8xf16> {
      %1 = neuroshard.lookup sum @a[%ids, "x"] weighted : !more -> tensor<?x8xf16>
      scf.yield %1 : tensor<?x8xf16>
    } else {
      %1 = neuroshard.lookup sum @a[%ids, "x"] : !more -> tensor<?x8xf16>
      scf.yield %1 : tensor<?x8xf16>
    }
    return %0 : tensor<?x8xf16>
  }
}
