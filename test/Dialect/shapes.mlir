// Sizes of results come from the ids, without the lookup.
// RUN: neuroshard-dialect-opt %s --resolve-ranked-shaped-type-result-dims --cse | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64, weighted>
neuroshard.table @t : 10 x 4 x f32

// CHECK-LABEL: func.func @pooled(
// CHECK-SAME:    %[[IDS:.*]]: !ids)
// CHECK-DAG:     %[[COLUMNS:.*]] = arith.constant 4 : index
// CHECK-DAG:     %[[BATCH:.*]] = neuroshard.batch_size %[[IDS]]
// CHECK-NOT:     neuroshard.lookup
// CHECK:         return %[[BATCH]], %[[COLUMNS]]
func.func @pooled(%ids: !ids) -> (index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %rows = tensor.dim %0, %c0 : tensor<?x4xf32>
  %columns = tensor.dim %0, %c1 : tensor<?x4xf32>
  return %rows, %columns : index, index
}

// CHECK-LABEL: func.func @unpooled(
// CHECK-SAME:    %[[IDS:.*]]: !ids)
// CHECK-NEXT:    %[[NUMBER:.*]] = neuroshard.num_ids %[[IDS]]["a"]
// CHECK-NEXT:    return %[[NUMBER]]
func.func @unpooled(%ids: !ids) -> index {
  %c0 = arith.constant 0 : index
  %0 = neuroshard.lookup unpooled @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %rows = tensor.dim %0, %c0 : tensor<?x4xf32>
  return %rows : index
}

// CHECK-LABEL: func.func @weights(
// CHECK-SAME:    %[[IDS:.*]]: !ids,
// CHECK-NEXT:    %[[NUMBER:.*]] = neuroshard.num_ids %[[IDS]] : !ids
// CHECK-NEXT:    return %[[NUMBER]]
func.func @weights(%ids: !ids, %g: tensor<?x4xf32>) -> index {
  %c0 = arith.constant 0 : index
  %0 = neuroshard.weights_gradient %ids [#neuroshard.lookup<sum @t["a"] weighted>] gradients(%g) : !ids, tensor<?x4xf32> -> tensor<?xf32>
  %size = tensor.dim %0, %c0 : tensor<?xf32>
  return %size : index
}
