// Lookups become loops over bags, ids and columns: f32 sums in the order of the ids,
// padding left out, a mean divided by the ids that count, rounded once; tables come as
// arguments.

// RUN: neuroshard-opt %s --neuroshard-lower-reference | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i32>

// CHECK-NOT: neuroshard.table
neuroshard.table @t : 10 x 3 x bf16
neuroshard.table @unused : 10 x 3 x f32

// CHECK-LABEL: func.func @mean(
// CHECK-SAME: %[[IDS:.*]]: tensor<?xi32>, %[[OFFSETS:.*]]: tensor<?xi64>,
// CHECK-SAME: %[[T:.*]]: memref<10x3xbf16> {neuroshard.weights = "t"}) -> tensor<?x3xf16>
// CHECK-DAG: %[[PADDING:.*]] = arith.constant 2 : index
// CHECK: %[[SUMS:.*]] = memref.alloc(%{{.*}}) : memref<?x3xf32>
// CHECK: %[[OFFSET:.*]] = tensor.extract %[[OFFSETS]]
// CHECK: scf.for %[[POSITION:.*]] = %{{.*}} to %{{.*}} step
// CHECK: %[[ID32:.*]] = tensor.extract %[[IDS]][%[[POSITION]]]
// CHECK: %[[ID:.*]] = arith.index_cast %[[ID32]] : i32 to index
// CHECK: %[[COUNTS:.*]] = arith.cmpi ne, %[[ID]], %{{.*}}
// CHECK: scf.if %[[COUNTS]]
// CHECK: %[[ROW:.*]] = memref.load %[[T]][%[[ID]], %{{.*}}]
// CHECK: %[[TERM:.*]] = arith.extf %[[ROW]] : bf16 to f32
// CHECK: %[[SUM:.*]] = memref.load %[[SUMS]]
// CHECK: %[[NEXT:.*]] = arith.addf %[[SUM]], %[[TERM]]
// CHECK: memref.store %[[NEXT]], %[[SUMS]]
// CHECK: %[[RESULT:.*]] = memref.alloc(%{{.*}}) : memref<?x3xf16>
// CHECK: arith.divf
// CHECK: arith.truncf {{.*}} : f32 to f16
// CHECK: %[[TENSOR:.*]] = bufferization.to_tensor %[[RESULT]] restrict writable
// CHECK: return %[[TENSOR]]
func.func @mean(%ids: !ids) -> tensor<?x3xf16> {
  %r = neuroshard.lookup mean @t[%ids, "b"] padding_idx 2 : !ids -> tensor<?x3xf16>
  return %r : tensor<?x3xf16>
}

// Rows of single ids are copied, padding too.
// CHECK-LABEL: func.func @unpooled(
// CHECK-NOT: arith.cmpi
// CHECK: memref.load
// CHECK: arith.extf {{.*}} : bf16 to f32
// CHECK-NEXT: memref.store
func.func @unpooled(%ids: !ids) -> tensor<?x3xf32> {
  %r = neuroshard.lookup unpooled @t[%ids, "a"] padding_idx 2 : !ids -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}

// A caller takes what its callees need and hands it on; bundles are their values.
// CHECK-LABEL: func.func @caller(
// CHECK-SAME: %[[I:.*]]: tensor<?xi32>, %[[O:.*]]: tensor<?xi64>, %[[W:.*]]: memref<10x3xbf16>
// CHECK: %[[P:.*]]:2 = call @start(%[[I]], %[[O]])
// CHECK: call @wait(%[[P]]#0, %[[P]]#1, %[[W]])
func.func @caller(%ids: !ids) -> tensor<?x3xf32> {
  %p = call @start(%ids) : (!ids) -> !neuroshard.pending<!ids>
  %r = call @wait(%p) : (!neuroshard.pending<!ids>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
// CHECK: func.func @start(%[[I:.*]]: tensor<?xi32>, %[[O:.*]]: tensor<?xi64>) -> (tensor<?xi32>, tensor<?xi64>)
// CHECK-NEXT: return %[[I]], %[[O]]
func.func @start(%ids: !ids) -> !neuroshard.pending<!ids> {
  %p = neuroshard.suspend %ids : !ids -> !neuroshard.pending<!ids>
  return %p : !neuroshard.pending<!ids>
}
func.func @wait(%p: !neuroshard.pending<!ids>) -> tensor<?x3xf32> {
  %ids = neuroshard.resume %p : !neuroshard.pending<!ids> -> !ids
  %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}
