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

// CHECK-LABEL: func.func @unpack_keyed(
// CHECK-SAME:    %[[IDS:[^:]*]]: tensor<?xi64>, %[[OFFSETS:[^:]*]]: tensor<?xi64>)
// CHECK-NEXT:    return %[[IDS]], %[[OFFSETS]]
func.func @unpack_keyed(%ids: tensor<?xi64>, %offsets: tensor<?xi64>) -> (tensor<?xi64>, tensor<?xi64>) {
  %k = neuroshard.from_keyed %ids, %offsets : tensor<?xi64>, tensor<?xi64> -> !neuroshard.jagged<["a"], i64>
  %u:2 = neuroshard.unpack %k["a"] : !neuroshard.jagged<["a"], i64> -> tensor<?xi64>, tensor<?xi64>
  return %u#0, %u#1 : tensor<?xi64>, tensor<?xi64>
}

// Of several features the tensors have more than the one that is unpacked.
// CHECK-LABEL: func.func @unpack_one_of_keyed(
// CHECK:         neuroshard.unpack
func.func @unpack_one_of_keyed(%ids: tensor<?xi64>, %offsets: tensor<?xi64>, %w: tensor<?xf32>) -> tensor<?xi64> {
  %k = neuroshard.from_keyed %ids, %offsets weights %w : tensor<?xi64>, tensor<?xi64>, tensor<?xf32> -> !ids
  %u:3 = neuroshard.unpack %k["b"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  return %u#0 : tensor<?xi64>
}

// CHECK-LABEL: func.func @pack_unpack(
// CHECK-SAME:    %[[IDS:.*]]: !ids1)
// CHECK-NEXT:    return %[[IDS]]
func.func @pack_unpack(%ids: !ids) -> !ids {
  %a:3 = neuroshard.unpack %ids["a"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  %b:3 = neuroshard.unpack %ids["b"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  %p = neuroshard.pack ids(%a#0, %b#0 : tensor<?xi64>, tensor<?xi64>) offsets(%a#1, %b#1 : tensor<?xi64>, tensor<?xi64>)
    weights(%a#2, %b#2 : tensor<?xf32>, tensor<?xf32>) : !ids
  return %p : !ids
}

// Another order, a part, or the ids of one feature with the offsets of another are other values.
// CHECK-LABEL: func.func @pack_other(
// CHECK-COUNT-3: neuroshard.pack
func.func @pack_other(%ids: !ids) -> (!neuroshard.jagged<["b", "a"], i64>, !neuroshard.jagged<["a"], i64>, !neuroshard.jagged<["a", "b"], i64>) {
  %a:3 = neuroshard.unpack %ids["a"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  %b:3 = neuroshard.unpack %ids["b"] : !ids -> tensor<?xi64>, tensor<?xi64>, tensor<?xf32>
  %0 = neuroshard.pack ids(%b#0, %a#0 : tensor<?xi64>, tensor<?xi64>) offsets(%b#1, %a#1 : tensor<?xi64>, tensor<?xi64>)
    : !neuroshard.jagged<["b", "a"], i64>
  %1 = neuroshard.pack ids(%a#0 : tensor<?xi64>) offsets(%a#1 : tensor<?xi64>) : !neuroshard.jagged<["a"], i64>
  %2 = neuroshard.pack ids(%a#0, %b#0 : tensor<?xi64>, tensor<?xi64>) offsets(%b#1, %a#1 : tensor<?xi64>, tensor<?xi64>)
    : !neuroshard.jagged<["a", "b"], i64>
  return %0, %1, %2 : !neuroshard.jagged<["b", "a"], i64>, !neuroshard.jagged<["a"], i64>, !neuroshard.jagged<["a", "b"], i64>
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

// CHECK-LABEL: func.func @scatter_gather(
// CHECK-SAME:    %[[S:.*]]: !neuroshard.dist<tensor<?x4xf32>, batch>)
// CHECK-NEXT:    return %[[S]]
func.func @scatter_gather(%s: !neuroshard.dist<tensor<?x4xf32>, batch>) -> !neuroshard.dist<tensor<?x4xf32>, batch> {
  %g = neuroshard.gather_batch %s : !neuroshard.dist<tensor<?x4xf32>, batch> -> tensor<?x4xf32>
  %0 = neuroshard.scatter_batch %g : tensor<?x4xf32> -> !neuroshard.dist<tensor<?x4xf32>, batch>
  return %0 : !neuroshard.dist<tensor<?x4xf32>, batch>
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
