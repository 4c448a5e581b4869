// What is packed, bundled or scattered and taken apart again folds away.
// RUN: neuroshard-dialect-opt %s --canonicalize | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64, weighted>
!pending = !neuroshard.pending<!ids, !ids>
!context = !neuroshard.context<!ids>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"n", groups = [1], bandwidth = 1.0>]
neuroshard.plan @plan on @cluster semantics exact {
}

// CHECK-LABEL: func.func @unpack_pack(
// CHECK-SAME:    %[[A:[^:]*]]: tensor<?xi64>, %[[B:[^:]*]]: tensor<?xi64>, %[[OA:[^:]*]]: tensor<?xi64>, %[[OB:[^:]*]]: tensor<?xi64>, %[[WA:[^:]*]]: tensor<?xf32>, %[[WB:[^:]*]]: tensor<?xf32>)
// CHECK-NEXT:    return %[[B]], %[[OB]], %[[WB]]
func.func @unpack_pack(%a: tensor<?xi64>, %b: tensor<?xi64>, %oa: tensor<?xi64>, %ob: tensor<?xi64>, %wa: tensor<?xf32>, %wb: tensor<?xf32>)
    -> (tensor<?xi64>, tensor<?xi64>, tensor<?xf32>) {
  %p = neuroshard.pack ids(%a, %b : tensor<?xi64>, tensor<?xi64>) offsets(%oa, %ob : tensor<?xi64>, tensor<?xi64>)
    weights(%wa, %wb : tensor<?xf32>, tensor<?xf32>) : !ids
  %u:3 = neuroshard.unpack %p["b"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  return %u#0, %u#1, %u#2 : tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
}

// Offsets of another type than those packed are a conversion, not the same value.
// CHECK-LABEL: func.func @unpack_converts(
// CHECK:         neuroshard.unpack
func.func @unpack_converts(%a: tensor<?xi64>, %o: tensor<?xi32>) -> tensor<?xi64> {
  %p = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%o : tensor<?xi32>) : !neuroshard.jagged<["a"], i64>
  %u:2 = neuroshard.unpack %p["a"] : !neuroshard.jagged<["a"], i64> -> tensor<?xi64>, tensor<?xi64>
  return %u#1 : tensor<?xi64>
}

// CHECK-LABEL: func.func @resume_suspend(
// CHECK-SAME:    %[[A:.*]]: !ids1, %[[B:.*]]: !ids1)
// CHECK-NEXT:    return %[[B]], %[[A]]
func.func @resume_suspend(%a: !ids, %b: !ids) -> (!ids, !ids) {
  %p = neuroshard.suspend %a, %b : !ids, !ids -> !pending
  %r:2 = neuroshard.resume %p : !pending -> !ids, !ids
  return %r#1, %r#0 : !ids, !ids
}

// CHECK-LABEL: func.func @restore_save(
// CHECK-SAME:    %[[A:.*]]: !ids1)
// CHECK-NEXT:    return %[[A]]
func.func @restore_save(%a: !ids) -> !ids {
  %c = neuroshard.save %a : !ids -> !context
  %r = neuroshard.restore %c : !context -> !ids
  return %r : !ids
}

// CHECK-LABEL: func.func @gather_scatter(
// CHECK-SAME:    %[[A:.*]]: tensor<?x4xf32>)
// CHECK-NEXT:    return %[[A]]
func.func @gather_scatter(%a: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %s = neuroshard.scatter_batch %a : tensor<?x4xf32> -> !neuroshard.dist<tensor<?x4xf32>, batch>
  %g = neuroshard.gather_batch %s : !neuroshard.dist<tensor<?x4xf32>, batch> -> tensor<?x4xf32>
  return %g : tensor<?x4xf32>
}

// A context that is discarded is not dead: what it holds must be given back.
// CHECK-LABEL: func.func @discard(
// CHECK:         neuroshard.discard
func.func @discard(%c: !context) {
  neuroshard.discard %c : !context
  return
}

// The ids of the only feature are all ids.
// CHECK-LABEL: func.func @num_ids(
// CHECK:         neuroshard.num_ids %arg0 :
// CHECK:         neuroshard.num_ids %arg1["a"] :
func.func @num_ids(%one: !neuroshard.jagged<["a"], i64>, %two: !ids) -> (index, index) {
  %0 = neuroshard.num_ids %one["a"] : !neuroshard.jagged<["a"], i64>
  %1 = neuroshard.num_ids %two["a"] : !ids
  return %0, %1 : index, index
}
