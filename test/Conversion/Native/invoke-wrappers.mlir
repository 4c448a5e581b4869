// A public function gets an entry point that reads its arguments through an array of
// pointers and stores its results in a struct; declarations and private functions none.

// RUN: neuroshard-opt %s --neuroshard-invoke-wrappers | FileCheck %s

// CHECK: llvm.func @nsrt_invoke_f(%[[ARGS:.*]]: !llvm.ptr) {
// CHECK: %[[A1:.*]] = llvm.getelementptr %[[ARGS]][1]
// CHECK: %[[DEVICE:.*]] = llvm.load %[[A1]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[A2:.*]] = llvm.getelementptr %[[ARGS]][2]
// CHECK: %[[P2:.*]] = llvm.load %[[A2]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[D2:.*]] = llvm.load %[[P2]] : !llvm.ptr -> !llvm.struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>
// CHECK: %[[X:.*]] = builtin.unrealized_conversion_cast %[[D2]] {{.*}} to memref<?xf32>
// CHECK: %[[A3:.*]] = llvm.getelementptr %[[ARGS]][3]
// CHECK: %[[P3:.*]] = llvm.load %[[A3]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[HANDLE:.*]] = llvm.load %[[P3]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[RESULTS:.*]]:2 = func.call @f(%[[DEVICE]], %[[X]], %[[HANDLE]])
// CHECK: %[[A0:.*]] = llvm.getelementptr %[[ARGS]][0]
// CHECK: %[[P0:.*]] = llvm.load %[[A0]]
// CHECK: %[[R0:.*]] = llvm.getelementptr %[[P0]][0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(ptr, struct<(ptr, ptr, i64, array<1 x i64>, array<1 x i64>)>)>
// CHECK: llvm.store %[[RESULTS]]#0, %[[R0]]
// CHECK: %[[R1:.*]] = llvm.getelementptr %[[P0]][0, 1]
// CHECK: llvm.store {{.*}}, %[[R1]]
func.func @f(%device: !llvm.ptr {nsrt.device}, %x: memref<?xf32>, %handle: !llvm.ptr) -> (!llvm.ptr, memref<?xf32>) {
  return %handle, %x : !llvm.ptr, memref<?xf32>
}

// Without results the first pointer is the first argument's.
// CHECK: llvm.func @nsrt_invoke_g(%[[ARGS:.*]]: !llvm.ptr) {
// CHECK: llvm.getelementptr %[[ARGS]][0]
// CHECK: %[[RATE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> f32
// CHECK: func.call @g(%[[RATE]])
func.func @g(%rate: f32) {
  return
}

// CHECK-NOT: nsrt_invoke
func.func private @h()
func.func private @i() {
  return
}
