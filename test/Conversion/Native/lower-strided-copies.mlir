// Copies to or from strided memory become loops, contiguous ones stay for memcpy; no call
// of MLIR's runtime library is left.

// RUN: neuroshard-opt %s --neuroshard-lower-strided-copies | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-native-pipeline | FileCheck %s --check-prefix=NATIVE

// NATIVE-NOT: memrefCopy

// CHECK-LABEL: @into_columns
// CHECK: linalg.copy ins(%{{.*}} : memref<?x13xf32>) outs(%{{.*}} : memref<?x13xf32, strided<[141, 1]>>)
func.func private @into_columns(%x: memref<?x13xf32>, %y: memref<?x13xf32, strided<[141, 1]>>) {
  memref.copy %x, %y : memref<?x13xf32> to memref<?x13xf32, strided<[141, 1]>>
  return
}

// CHECK-LABEL: @contiguous
// CHECK: memref.copy
func.func private @contiguous(%x: memref<?x13xf32>, %y: memref<?x13xf32>) {
  memref.copy %x, %y : memref<?x13xf32> to memref<?x13xf32>
  return
}

// CHECK-LABEL: @offset
// CHECK: memref.copy
func.func private @offset(%x: memref<4x13xf32>, %y: memref<4x13xf32, strided<[13, 1], offset: 26>>) {
  memref.copy %x, %y : memref<4x13xf32> to memref<4x13xf32, strided<[13, 1], offset: 26>>
  return
}
