// Functions that take a table are brought into their callers, as JAX calls @_take: one that nothing names then goes.
// RUN: neuroshard-opt %s --allow-unregistered-dialect --split-input-file --neuroshard-raise-lookups=strict=true | FileCheck %s

// CHECK-LABEL: module
// CHECK-NEXT:    neuroshard.table private @table0 : 100 x 4 x f32
// CHECK-LABEL: func.func @main(
// CHECK-SAME:    %{{.*}}: tensor<8xi32>, %{{.*}}: tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK-COUNT-2: neuroshard.lookup unpooled @table0
// CHECK:         return
// CHECK-NOT:     func.func
func.func @main(%t: tensor<100x4xf32>, %a: tensor<8xi32>, %b: tensor<8xi32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = call @through(%t, %a) : (tensor<100x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  %1 = call @_take(%t, %b) : (tensor<100x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
func.func private @through(%t: tensor<100x4xf32>, %ids: tensor<8xi32>) -> tensor<8x4xf32> {
  %0 = call @_take(%t, %ids) : (tensor<100x4xf32>, tensor<8xi32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
func.func private @_take(%t: tensor<100x4xf32>, %ids: tensor<8xi32>) -> tensor<8x4xf32> {
  %indices = "stablehlo.broadcast_in_dim"(%ids) <{broadcast_dimensions = array<i64: 0>}> : (tensor<8xi32>) -> tensor<8x1xi32>
  %rows = "stablehlo.gather"(%t, %indices) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  return %rows : tensor<8x4xf32>
}

// -----

// A function without a table of its own stays called.
// CHECK-LABEL: func.func @outer(
// CHECK:         call @half(
// CHECK:         neuroshard.lookup unpooled @table0
// CHECK:       func.func private @half(
func.func @outer(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %moved = call @half(%ids) : (tensor<?x1xi64>) -> tensor<?x1xi64>
  %rows = tensor.gather %t[%moved] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}
func.func private @half(%ids: tensor<?x1xi64>) -> tensor<?x1xi64> {
  %0 = "other.half"(%ids) : (tensor<?x1xi64>) -> tensor<?x1xi64>
  return %0 : tensor<?x1xi64>
}
