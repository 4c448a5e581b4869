// Jagged values are their tensors: pack concatenates and shifts offsets, unpack cuts out
// and shifts back, i32 offsets become i64, sizes come from the offsets.

// RUN: neuroshard-opt %s --neuroshard-lower-reference | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>

// CHECK-LABEL: func.func @pack(
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<?xi64>, %[[B:[a-z0-9]*]]: tensor<?xi64>, %[[OA:[a-z0-9]*]]: tensor<?xi64>, %[[OB:[a-z0-9]*]]: tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi64>)
// CHECK: %[[BAGS:.*]] = tensor.dim %[[OA]]
// CHECK: %[[BATCH:.*]] = arith.subi %[[BAGS]]
// CHECK: tensor.extract %[[OA]][%[[BATCH]]]
// CHECK: tensor.extract %[[OB]][%[[BATCH]]]
// CHECK: memref.alloc
// CHECK: tensor.extract %[[A]]
// CHECK: tensor.extract %[[B]]
func.func @pack(%a: tensor<?xi64>, %b: tensor<?xi64>, %oa: tensor<?xi64>, %ob: tensor<?xi64>) -> !ids {
  %j = neuroshard.pack ids(%a, %b : tensor<?xi64>, tensor<?xi64>)
    offsets(%oa, %ob : tensor<?xi64>, tensor<?xi64>) : !ids
  return %j : !ids
}

// CHECK-LABEL: func.func @keyed(
// CHECK-SAME: %[[IDS:.*]]: tensor<?xi64>, %[[OFFSETS:.*]]: tensor<?xi32>)
// CHECK: %[[WIDE:.*]] = bufferization.to_tensor {{.*}} : memref<?xi64>
// CHECK: return %[[IDS]], %[[WIDE]]
func.func @keyed(%ids: tensor<?xi64>, %offsets: tensor<?xi32>) -> !ids {
  %j = neuroshard.from_keyed %ids, %offsets : tensor<?xi64>, tensor<?xi32> -> !ids
  return %j : !ids
}

// CHECK-LABEL: func.func @sizes(
// CHECK-SAME: %[[IDS:.*]]: tensor<?xi64>, %[[OFFSETS:.*]]: tensor<?xi64>)
// CHECK: %[[SIZE:.*]] = tensor.dim %[[OFFSETS]]
// CHECK: %[[BAGS:.*]] = arith.subi %[[SIZE]]
// CHECK: %[[BATCH:.*]] = arith.divui %[[BAGS]]
// CHECK: %[[IDS_SIZE:.*]] = tensor.dim %[[IDS]]
// CHECK: return %[[BATCH]], %[[IDS_SIZE]]
func.func @sizes(%j: !ids) -> (index, index) {
  %b = neuroshard.batch_size %j : !ids
  %n = neuroshard.num_ids %j : !ids
  return %b, %n : index, index
}

// CHECK-LABEL: func.func @unpack(
// CHECK-SAME: -> (tensor<?xi64>, tensor<?xi32>)
// CHECK: arith.index_cast {{.*}} : index to i32
func.func @unpack(%j: !ids) -> (tensor<?xi64>, tensor<?xi32>) {
  %ids, %offsets = neuroshard.unpack %j["b"] : !ids -> tensor<?xi64>, tensor<?xi32>
  return %ids, %offsets : tensor<?xi64>, tensor<?xi32>
}

// CHECK-LABEL: func.func @loop(
// CHECK: scf.if {{.*}} -> (tensor<?xi64>, tensor<?xi64>)
func.func @loop(%c: i1, %a: !ids, %b: !ids) -> !ids {
  %r = scf.if %c -> !ids {
    scf.yield %a : !ids
  } else {
    scf.yield %b : !ids
  }
  return %r : !ids
}
