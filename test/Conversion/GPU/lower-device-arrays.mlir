// Accesses to arrays behind device pointers: rows of two dimensions by their stride, with the
// alignment of the access or of an element, and invariant where the array is.
// RUN: neuroshard-opt %s --neuroshard-lower-device-arrays --split-input-file --verify-diagnostics | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: func.func private @copy(
  // CHECK-SAME: %[[FROM:.*]]: !llvm.ptr<1>, %[[TO:.*]]: !llvm.ptr<1>, %[[ROW:.*]]: index, %[[COLUMN:.*]]: index)
  // CHECK-NOT: unrealized_conversion_cast
  // CHECK: %[[BEFORE:.*]] = arith.muli %[[ROW]], %c16{{.*}} : index
  // CHECK: %[[NUMBER:.*]] = arith.addi %[[BEFORE]], %[[COLUMN]] : index
  // CHECK: %[[I:.*]] = arith.index_cast %[[NUMBER]] : index to i64
  // CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[FROM]][%[[I]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  // CHECK: %[[V:.*]] = llvm.load %[[ADDRESS]] invariant {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
  // CHECK: %[[J:.*]] = arith.index_cast %[[COLUMN]] : index to i64
  // CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[TO]][%[[J]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  // CHECK: llvm.store %[[V]], %[[PLACE]] {alignment = 8 : i64} : vector<4xf32>, !llvm.ptr<1>
  // CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> f32
  func.func private @copy(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %row: index, %column: index) -> f32 {
    %x = builtin.unrealized_conversion_cast %p : !llvm.ptr<1> to memref<100x16xf32> {nsg.invariant}
    %y = builtin.unrealized_conversion_cast %q : !llvm.ptr<1> to memref<100xf32>
    %v = vector.load %x[%row, %column] {alignment = 16 : i64} : memref<100x16xf32>, vector<4xf32>
    vector.store %v, %y[%column] {alignment = 8 : i64} : memref<100xf32>, vector<4xf32>
    %s = memref.load %y[%row] : memref<100xf32>
    return %s : f32
  }
}

// -----

gpu.module @kernels {
  func.func private @argument(%x: memref<100xf32>, %row: index) -> f32 {
    // expected-error@+1 {{'memref.load' op must access an array of one or two dimensions that is cast from a device pointer, got: 'memref<100xf32>'}}
    %s = memref.load %x[%row] : memref<100xf32>
    return %s : f32
  }
}
