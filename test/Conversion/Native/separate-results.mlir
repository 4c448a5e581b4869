// Results of public functions do not share buffers.

// RUN: neuroshard-opt %s --neuroshard-separate-results | FileCheck %s

// CHECK-LABEL: @twice
// CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[X:.*]]) : tensor<4xf32>
// CHECK: return %[[X]], %[[COPY]]
func.func @twice(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @reshaped
// CHECK: %[[VIEW:.*]] = tensor.collapse_shape
// CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[VIEW]]) : tensor<8xf32>
// CHECK: return %{{.*}}, %[[COPY]]
func.func @reshaped(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<8xf32>) {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %x, %0 : tensor<2x4xf32>, tensor<8xf32>
}

// CHECK-LABEL: @chosen
// CHECK: %[[ONE:.*]] = arith.select
// CHECK: %[[COPY:.*]] = bufferization.alloc_tensor() copy(%[[ONE]])
// CHECK: return %[[COPY]], %{{.*}}
func.func @chosen(%c: i1, %x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = arith.select %c, %x, %y : tensor<4xf32>
  return %0, %x : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @different
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func @different(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: index) -> (tensor<4xf32>, tensor<4xf32>, index, index) {
  return %x, %y, %i, %i : tensor<4xf32>, tensor<4xf32>, index, index
}

// CHECK-LABEL: func.func private @private
// CHECK-NOT: alloc_tensor
// CHECK: return
func.func private @private(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}
