// The same ids in other bags are another feature; casts of rows keep the types of results.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups=strict=true --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rows_and_sums(
// CHECK-DAG:     neuroshard.lookup unpooled @t[%[[SAMPLES:.*]], "ids"]
// CHECK-DAG:     neuroshard.lookup sum @t[%[[BAGS:.*]], "ids_2"]
func.func @rows_and_sums(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x2x3x1xi64> loc("ids")) -> (tensor<?x2x3x4xf32>, tensor<?x2x4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %ids, %c0 : tensor<?x2x3x1xi64>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x2x3x1xi64>) -> tensor<?x2x3x4xf32>
  %e = tensor.empty(%n) : tensor<?x2x4xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  %s = linalg.reduce {arith.addf} ins(%rows : tensor<?x2x3x4xf32>) outs(%f : tensor<?x2x4xf32>) dimensions = [2]
  return %rows, %s : tensor<?x2x3x4xf32>, tensor<?x2x4xf32>
}

// -----

// A last dimension of 1 that is an index to the one and a bag to the other.
// CHECK-LABEL: func.func @index_or_bag(
// CHECK-DAG:     neuroshard.lookup unpooled @t[%{{.*}}, "ids"]
// CHECK-DAG:     neuroshard.lookup sum @t[%{{.*}}, "ids_2"]
func.func @index_or_bag(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x3x1xi64> loc("ids")) -> (tensor<?x3x4xf32>, tensor<?x3x4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %ids, %c0 : tensor<?x3x1xi64>
  %a = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x3x1xi64>) -> tensor<?x3x4xf32>
  %e3 = tensor.empty(%n) : tensor<?x3x4xf32>
  %f = linalg.fill ins(%z: f32) outs(%e3: tensor<?x3x4xf32>) -> tensor<?x3x4xf32>
  %b = linalg.generic {indexing_maps=[affine_map<(b,l,k,d)->(b,l,k)>, affine_map<(b,l,k,d)->(b,l,d)>], iterator_types=["parallel","parallel","reduction","parallel"]} ins(%ids: tensor<?x3x1xi64>) outs(%f: tensor<?x3x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 3 : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    %q = arith.addf %o, %v : f32
    linalg.yield %q : f32
  } -> tensor<?x3x4xf32>
  return %a, %b : tensor<?x3x4xf32>, tensor<?x3x4xf32>
}

// -----

// CHECK-LABEL: func.func @cast_then_expanded(
// CHECK:         tensor.cast %{{.*}} : tensor<?xi64> to tensor<12xi64>
// CHECK:         neuroshard.lookup unpooled @t[%{{.*}}, "ids"] : !ids -> tensor<12x4xf32>
func.func @cast_then_expanded(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x1xi64> loc("ids")) -> tensor<4x3x4xf32> {
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %c = tensor.cast %rows : tensor<?x4xf32> to tensor<12x4xf32>
  %x = tensor.expand_shape %c [[0,1],[2]] output_shape [4,3,4] : tensor<12x4xf32> into tensor<4x3x4xf32>
  return %x : tensor<4x3x4xf32>
}

// -----

// CHECK-LABEL: func.func @columns_forgotten(
// CHECK-SAME:    -> (tensor<?x?xf32>, tensor<?x?xf32>)
// CHECK:         %[[ROWS:.*]] = neuroshard.lookup unpooled
// CHECK:         %[[CAST:.*]] = tensor.cast %[[ROWS]] : tensor<?x4xf32> to tensor<?x?xf32>
// CHECK:         %[[NEGATED:.*]] = arith.negf %[[CAST]] : tensor<?x?xf32>
// CHECK:         return %[[CAST]], %[[NEGATED]]
func.func @columns_forgotten(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x1xi64> loc("ids")) -> (tensor<?x?xf32>, tensor<?x?xf32>) {
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %c = tensor.cast %r : tensor<?x4xf32> to tensor<?x?xf32>
  %k = arith.negf %c : tensor<?x?xf32>
  return %c, %k : tensor<?x?xf32>, tensor<?x?xf32>
}

// -----

// A name that is empty is none.
// CHECK:       neuroshard.table private @table0 :
// CHECK-LABEL: func.func @no_name(
// CHECK:         neuroshard.lookup unpooled @table0[%{{.*}}, "ids1"]
func.func @no_name(%t: tensor<23x4xf32> loc(""), %ids: tensor<?x1xi64> loc("")) -> tensor<?x4xf32> {
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
