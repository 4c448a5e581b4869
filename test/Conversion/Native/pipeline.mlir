// The way of a host function: a matrix product with a vectorisable inner loop, buffers
// freed, a private declaration kept for the runtime.

// RUN: neuroshard-opt %s --neuroshard-native-pipeline | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-native-pipeline=invoke-wrappers=false | FileCheck %s --check-prefix=PLAIN

// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_free(!llvm.ptr)
// CHECK-DAG: llvm.func @_mlir_memref_to_llvm_aligned_alloc(i64, i64) -> !llvm.ptr
// CHECK-DAG: llvm.func @nsrt_use(!llvm.ptr)
func.func private @nsrt_use(!llvm.ptr)

// CHECK: llvm.func @f(
// The temporary of the first product is freed, the result is not.
// CHECK: llvm.call @_mlir_memref_to_llvm_aligned_alloc
// CHECK: llvm.call @_mlir_memref_to_llvm_aligned_alloc
// CHECK: llvm.call @nsrt_use
// CHECK: llvm.call @_mlir_memref_to_llvm_free
// CHECK-NOT: llvm.call @_mlir_memref_to_llvm_free
// CHECK: llvm.func @nsrt_invoke_f(
// CHECK-NOT: unrealized_conversion_cast
// PLAIN-NOT: nsrt_invoke_
func.func @f(%p: !llvm.ptr, %x: tensor<8x8xf32>, %y: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x8xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  %a = linalg.matmul ins(%x, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  %b = linalg.matmul ins(%a, %y : tensor<8x8xf32>, tensor<8x8xf32>) outs(%z : tensor<8x8xf32>) -> tensor<8x8xf32>
  call @nsrt_use(%p) : (!llvm.ptr) -> ()
  return %b : tensor<8x8xf32>
}
