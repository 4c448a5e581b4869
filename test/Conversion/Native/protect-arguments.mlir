// Tensor arguments of public functions become read-only; private functions, other
// types and explicit choices stay.

// RUN: neuroshard-opt %s --neuroshard-protect-arguments | FileCheck %s

// CHECK: func.func @public(%{{.*}}: tensor<4xf32> {bufferization.writable = false}, %{{.*}}: memref<4xf32>, %{{.*}}: f32)
func.func @public(%x: tensor<4xf32>, %y: memref<4xf32>, %z: f32) {
  return
}

// CHECK: func.func @chosen(%{{.*}}: tensor<4xf32> {bufferization.writable = true})
func.func @chosen(%x: tensor<4xf32> {bufferization.writable = true}) {
  return
}

// CHECK: func.func private @private(%{{.*}}: tensor<4xf32>)
func.func private @private(%x: tensor<4xf32>) {
  return
}
