// Gathers of StableHLO in generic form, whose dialect is not registered, become lookups, or say why not.
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups | FileCheck %s
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups=assume-valid-inputs=true | FileCheck %s --check-prefix=VALID
// RUN: not neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true 2>&1 | FileCheck %s --check-prefix=ERROR

// StableHLO moves ids into the table; a lookup refuses others. So they are moved before.
// CHECK-LABEL: func.func @sum(
// CHECK-SAME:    %[[IDS:.*]]: tensor<8x3xi32>) -> tensor<8x4xf32>
// CHECK:         %[[MOVED:.*]] = linalg.generic {{.*}} ins(%[[IDS]] : tensor<8x3xi32>)
// CHECK:           arith.constant 0 : i32
// CHECK:           arith.maxsi
// CHECK:           arith.constant 99 : i32
// CHECK:           arith.minsi
// CHECK:         %[[FLAT:.*]] = tensor.collapse_shape %[[MOVED]]
// CHECK:         neuroshard.pack ids(%[[FLAT]]
// CHECK:         %[[SUMS:.*]] = neuroshard.lookup sum @table0
// CHECK-NEXT:    return %[[SUMS]]
// VALID-LABEL: func.func @sum(
// VALID-NOT:     linalg.generic
// VALID:         neuroshard.lookup sum @table0
func.func @sum(%t: tensor<100x4xf32>, %ids: tensor<8x3xi32>) -> tensor<8x4xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %indices = "stablehlo.broadcast_in_dim"(%ids) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<8x3xi32>) -> tensor<8x3x1xi32>
  %rows = "stablehlo.gather"(%t, %indices) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x3x1xi32>) -> tensor<8x3x4xf32>
  %sums = "stablehlo.reduce"(%rows, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<8x3x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %sums : tensor<8x4xf32>
}

// Weights as JAX has them, with a last dimension of 1, behind a conversion as torch-mlir has it.
// CHECK-LABEL: func.func @weighted(
// CHECK-SAME:    %[[WIDS:.*]]: tensor<8x3xi32>, %[[W:.*]]: tensor<8x3xf32>) -> tensor<8x4xf32>
// CHECK:         %[[WFLAT:.*]] = tensor.collapse_shape %[[W]]
// CHECK:         neuroshard.pack ids({{.*}}) offsets({{.*}}) weights(%[[WFLAT]]
// CHECK:         %[[WSUMS:.*]] = neuroshard.lookup sum @{{.*}} weighted
// CHECK-NEXT:    return %[[WSUMS]]
func.func @weighted(%t: tensor<100x4xf32>, %ids: tensor<8x3xi32>, %w: tensor<8x3xf32>) -> tensor<8x4xf32> {
  %zero = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
  %rows = "stablehlo.gather"(%t, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x3xi32>) -> tensor<8x3x4xf32>
  %same = "stablehlo.convert"(%rows) : (tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %column = "stablehlo.broadcast_in_dim"(%w) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<8x3xf32>) -> tensor<8x3x1xf32>
  %all = "stablehlo.broadcast_in_dim"(%column) <{broadcast_dimensions = array<i64: 0, 1, 2>}> : (tensor<8x3x1xf32>) -> tensor<8x3x4xf32>
  %products = "stablehlo.multiply"(%same, %all) : (tensor<8x3x4xf32>, tensor<8x3x4xf32>) -> tensor<8x3x4xf32>
  %sums = "stablehlo.reduce"(%products, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%s) : (tensor<f32>) -> ()
  }) : (tensor<8x3x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %sums : tensor<8x4xf32>
}

// What is no row, no whole row, or of two indices, stays.
// CHECK-LABEL: func.func @near(
// CHECK-NOT:     neuroshard.lookup
// ERROR-DAG: error: 'stablehlo.gather' op looks like a lookup and is not raised: it must take whole rows: constant slice_sizes = [1, 4]
// ERROR-DAG: error: 'stablehlo.gather' op looks like a lookup and is not raised: lookups select by one index in dimension 0 of the table (start_index_map = [0])
// ERROR-DAG: error: 'stablehlo.gather' op looks like a lookup and is not raised: the result must be the dimensions of the ids and then the columns
// ERROR-DAG: error: 'stablehlo.gather' op looks like a lookup and is not raised: ids must be i32 or i64, got: ui32
func.func @near(%t: tensor<100x4xf32>, %ids: tensor<8x1xi32>, %pairs: tensor<8x2xi32>, %unsigned: tensor<8x1xui32>)
    -> (tensor<8x3xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x4xf32>) {
  %0 = "stablehlo.gather"(%t, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<100x4xf32>, tensor<8x1xi32>) -> tensor<8x3xf32>
  %1 = "stablehlo.gather"(%t, %pairs) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<100x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  %2 = "stablehlo.gather"(%t, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x1xi32>) -> tensor<4x8xf32>
  %3 = "stablehlo.gather"(%t, %unsigned) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x1xui32>) -> tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<8x3xf32>, tensor<8xf32>, tensor<4x8xf32>, tensor<8x4xf32>
}
