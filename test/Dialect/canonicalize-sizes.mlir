// Sizes of jagged ids that are packed in the same function are those of the tensors.
// RUN: neuroshard-dialect-opt %s --canonicalize | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>
!one = !neuroshard.jagged<["a"], i64>

// CHECK-LABEL: func.func @constants(
// CHECK-DAG:     %[[BATCH:.*]] = arith.constant 7 : index
// CHECK-DAG:     %[[A:.*]] = arith.constant 30 : index
// CHECK-DAG:     %[[ALL:.*]] = arith.constant 50 : index
// CHECK-NEXT:    return %[[BATCH]], %[[A]], %[[ALL]]
func.func @constants(%a: tensor<30xi64>, %b: tensor<20xi64>, %oa: tensor<?xi64>, %ob: tensor<8xi64>) -> (index, index, index) {
  %p = neuroshard.pack ids(%a, %b : tensor<30xi64>, tensor<20xi64>) offsets(%oa, %ob : tensor<?xi64>, tensor<8xi64>) : !ids
  %batch = neuroshard.batch_size %p : !ids
  %0 = neuroshard.num_ids %p["a"] : !ids
  %1 = neuroshard.num_ids %p : !ids
  return %batch, %0, %1 : index, index, index
}

// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME:    %[[A:[^:]*]]: tensor<?xi64>, %[[B:[^:]*]]: tensor<20xi64>, %[[OA:[^:]*]]: tensor<?xi64>
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG:     %[[C20:.*]] = arith.constant 20 : index
// CHECK:         %[[ENTRIES:.*]] = tensor.dim %[[OA]], %[[C0]]
// CHECK:         %[[BATCH:.*]] = arith.subi %[[ENTRIES]], %[[C1]]
// CHECK:         %[[NUM_A:.*]] = tensor.dim %[[A]], %[[C0]]
// CHECK:         return %[[BATCH]], %[[NUM_A]], %[[C20]]
func.func @dynamic(%a: tensor<?xi64>, %b: tensor<20xi64>, %oa: tensor<?xi64>, %ob: tensor<?xi64>) -> (index, index, index) {
  %p = neuroshard.pack ids(%a, %b : tensor<?xi64>, tensor<20xi64>) offsets(%oa, %ob : tensor<?xi64>, tensor<?xi64>) : !ids
  %batch = neuroshard.batch_size %p : !ids
  %0 = neuroshard.num_ids %p["a"] : !ids
  %1 = neuroshard.num_ids %p["b"] : !ids
  return %batch, %0, %1 : index, index, index
}

// The ids of all features are in several tensors.
// CHECK-LABEL: func.func @sum(
// CHECK:         neuroshard.num_ids %{{[^\[]*}} : !ids
func.func @sum(%a: tensor<?xi64>, %b: tensor<20xi64>, %oa: tensor<?xi64>, %ob: tensor<?xi64>) -> index {
  %p = neuroshard.pack ids(%a, %b : tensor<?xi64>, tensor<20xi64>) offsets(%oa, %ob : tensor<?xi64>, tensor<?xi64>) : !ids
  %0 = neuroshard.num_ids %p : !ids
  return %0 : index
}

// Of a KeyedJaggedTensor all ids are in one tensor, those of a feature are not.
// CHECK-LABEL: func.func @keyed(
// CHECK-SAME:    %[[IDS:[^:]*]]: tensor<?xi64>, %[[OFFSETS:[^:]*]]: tensor<15xi64>)
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG:     %[[BATCH:.*]] = arith.constant 7 : index
// CHECK:         %[[KEYED:.*]] = neuroshard.from_keyed
// CHECK:         %[[ALL:.*]] = tensor.dim %[[IDS]], %[[C0]]
// CHECK:         %[[B:.*]] = neuroshard.num_ids %[[KEYED]]["b"]
// CHECK:         return %[[BATCH]], %[[ALL]], %[[B]]
func.func @keyed(%ids: tensor<?xi64>, %offsets: tensor<15xi64>) -> (index, index, index) {
  %k = neuroshard.from_keyed %ids, %offsets : tensor<?xi64>, tensor<15xi64> -> !ids
  %batch = neuroshard.batch_size %k : !ids
  %0 = neuroshard.num_ids %k : !ids
  %1 = neuroshard.num_ids %k["b"] : !ids
  return %batch, %0, %1 : index, index, index
}

// Offsets that fit no batch are left to whoever runs them.
// CHECK-LABEL: func.func @no_batch(
// CHECK:         neuroshard.batch_size
func.func @no_batch(%ids: tensor<?xi64>, %offsets: tensor<14xi64>) -> index {
  %k = neuroshard.from_keyed %ids, %offsets : tensor<?xi64>, tensor<14xi64> -> !ids
  %batch = neuroshard.batch_size %k : !ids
  return %batch : index
}

// CHECK-LABEL: func.func @arguments(
// CHECK:         neuroshard.batch_size %arg0
// CHECK:         neuroshard.num_ids %arg0["a"]
func.func @arguments(%ids: !ids) -> (index, index) {
  %batch = neuroshard.batch_size %ids : !ids
  %0 = neuroshard.num_ids %ids["a"] : !ids
  return %batch, %0 : index, index
}
