// Matrix products become loops over packed blocks and tiles of sums; other ops, other types
// and results whose rows are not contiguous stay.

// RUN: neuroshard-opt %s --neuroshard-tile-contractions='rows=2 columns=8 fused=true' --split-input-file | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-tile-contractions --split-input-file | FileCheck %s --check-prefix=SEPARATE
// RUN: not neuroshard-opt %s --neuroshard-tile-contractions=rows=0 --split-input-file 2>&1 | FileCheck %s --check-prefix=ERROR

// Remarks name each product that was tiled, and each that stays.
// RUN: neuroshard-opt %s --neuroshard-tile-contractions='rows=2 columns=8 fused=true' --split-input-file --remarks-filter=neuroshard-tile-contractions --remark-format=emitRemark 2>&1 -o /dev/null | FileCheck %s --check-prefix=REMARK
// REMARK-COUNT-4: [Passed] Tiled | {{.*}} Remark="matrix product by tiles of 2 x 8 sums, products and sums rounded once"
// REMARK-COUNT-4: [Missed] NotTiled | {{.*}} Remark="a product stays loops over elements: expected sums in f32 over one loop, rows and columns, and contiguous rows of the result"
// REMARK-NOT: remark

// ERROR: error: a tile needs at least 1 row and 1 column, got: 0 x 16

#left = affine_map<(i, k, j) -> (i, k)>
#right = affine_map<(i, k, j) -> (k, j)>
#transposed = affine_map<(i, k, j) -> (j, k)>
#out = affine_map<(i, k, j) -> (i, j)>

// CHECK-LABEL: @product
// CHECK-SAME: (%[[A:.*]]: memref<?x512xf32>, %[[B:.*]]: memref<512x96xf32>, %[[C:.*]]: memref<?x96xf32>)
// CHECK: %[[PACKED:.*]] = memref.alloca() {alignment = 64 : i64} : memref<256x8xf32>
// CHECK: scf.for %[[ROWS:.*]] = {{.*}} step %c480
// CHECK: scf.for %[[SUMS:.*]] = {{.*}} step %c256
// CHECK: scf.for %[[COLUMNS:.*]] = {{.*}} step %c8
// CHECK: memref.load %[[B]]
// CHECK: memref.store {{.*}}, %[[PACKED]]
// CHECK: scf.for {{.*}} step %c2
// CHECK-COUNT-2: vector.maskedload %[[C]]
// CHECK: scf.for {{.*}} -> (vector<8xf32>, vector<8xf32>)
// CHECK: vector.load %[[PACKED]]
// CHECK: memref.load %[[A]]
// CHECK: math.fma
// CHECK: memref.load %[[A]]
// CHECK: math.fma
// CHECK-COUNT-2: vector.maskedstore %[[C]]
// The rows that are left.
// CHECK: scf.for {{.*}} -> (vector<8xf32>)
// CHECK-NOT: linalg.generic
// SEPARATE-LABEL: @product
// SEPARATE: memref<256x16xf32>
// SEPARATE: arith.mulf
// SEPARATE-NEXT: arith.addf
// SEPARATE-NOT: math.fma
func.func @product(%a: memref<?x512xf32>, %b: memref<512x96xf32>, %c: memref<?x96xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<?x512xf32>, memref<512x96xf32>) outs(%c : memref<?x96xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %y, %x : f32
    %s = arith.addf %p, %sum : f32
    linalg.yield %s : f32
  }
  return
}

// Weights as torch has them, with neighbours along k, are turned in squares of 16 x 16.
// SEPARATE-LABEL: @transposed_twice
// SEPARATE-COUNT-16: vector.load %arg1
// SEPARATE-COUNT-64: vector.shuffle
// SEPARATE-NOT: vector.transpose
// Two products share the packed block.
// CHECK-LABEL: @transposed_twice
// CHECK-COUNT-1: memref.alloca
// CHECK-NOT: memref.alloca
// CHECK-NOT: linalg.generic
func.func @transposed_twice(%a: memref<?x512xf32>, %b: memref<96x512xf32>, %c: memref<?x96xf32>) {
  linalg.generic {indexing_maps = [#left, #transposed, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<?x512xf32>, memref<96x512xf32>) outs(%c : memref<?x96xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#transposed, #left, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%b, %a : memref<96x512xf32>, memref<?x512xf32>) outs(%c : memref<?x96xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}

// Narrower inputs are extended as they are packed, and as they are multiplied.
// CHECK-LABEL: @narrow
// CHECK: memref.load %arg1
// CHECK-NEXT: arith.extf {{.*}} : bf16 to f32
// CHECK-NEXT: memref.store
// CHECK: memref.load %arg0
// CHECK-NEXT: arith.extf {{.*}} : bf16 to f32
// CHECK-NOT: linalg.generic
// CHECK-LABEL: @stay
func.func @narrow(%a: memref<?x512xbf16>, %b: memref<512x96xbf16>, %c: memref<?x96xf32>) {
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<?x512xbf16>, memref<512x96xbf16>) outs(%c : memref<?x96xf32>) {
  ^bb0(%x: bf16, %y: bf16, %sum: f32):
    %u = arith.extf %x : bf16 to f32
    %v = arith.extf %y : bf16 to f32
    %p = arith.mulf %u, %v : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}

// SEPARATE-LABEL: @stay
func.func @stay(%a: memref<4x8xf32>, %b: memref<8x16xf32>, %c: memref<4x16xf32>,
                %g: memref<4x8xf16>, %h: memref<8x16xf16>, %half: memref<4x16xf16>,
                %d: memref<4x8xf64>, %e: memref<8x16xf64>, %f: memref<4x16xf64>,
                %strided: memref<4x16xf32, strided<[1, 4]>>, %row: memref<16xf32>) {
  // A difference.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.subf %sum, %p : f32
    linalg.yield %s : f32
  }
  // Sums of f16, which are rounded one by one.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%g, %h : memref<4x8xf16>, memref<8x16xf16>) outs(%half : memref<4x16xf16>) {
  ^bb0(%x: f16, %y: f16, %sum: f16):
    %p = arith.mulf %x, %y : f16
    %s = arith.addf %sum, %p : f16
    linalg.yield %s : f16
  }
  // f64.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%d, %e : memref<4x8xf64>, memref<8x16xf64>) outs(%f : memref<4x16xf64>) {
  ^bb0(%x: f64, %y: f64, %sum: f64):
    %p = arith.mulf %x, %y : f64
    %s = arith.addf %sum, %p : f64
    linalg.yield %s : f64
  }
  // Neighbouring columns are not neighbours in memory.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%strided : memref<4x16xf32, strided<[1, 4]>>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  // Squares: the product is of one input.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%c : memref<4x16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %x : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  // Two loops of sums.
  // CHECK: linalg.generic
  linalg.generic {indexing_maps = [#left, #right, affine_map<(i, k, j) -> (j)>], iterator_types = ["reduction", "reduction", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8x16xf32>) outs(%row : memref<16xf32>) {
  ^bb0(%x: f32, %y: f32, %sum: f32):
    %p = arith.mulf %x, %y : f32
    %s = arith.addf %sum, %p : f32
    linalg.yield %s : f32
  }
  return
}
