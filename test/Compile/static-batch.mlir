// A program that was compiled for a number of rows refuses batches of another.
// RUN: neuroshard-compile %s --topology 1xCPU --reference -o %t
// RUN: neuroshard-run %t --batch 64 --steps 1 | FileCheck %s
// RUN: not neuroshard-run %t --batch 10 --steps 1 2>&1 | FileCheck %s --check-prefix=FEWER
// RUN: not neuroshard-run %t --batch 100 --steps 1 2>&1 | FileCheck %s --check-prefix=MORE

// CHECK: 0 of 1024 values differ
// FEWER: rank 0: the program was compiled for 64 rows of result 0, found 10; give it batches of that size, or compile a model whose batch is dynamic
// MORE: rank 0: the program was compiled for 64 rows of result 0, found 100;

!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @t : 100 x 16 x f32
  func.func @forward(%ids: !ids) -> tensor<64x16xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<64x16xf32>
    %1 = arith.addf %0, %0 : tensor<64x16xf32>
    return %1 : tensor<64x16xf32>
  }
}
