// Elementwise ops are fused with each other, transpositions into all users; nothing that
// would be computed twice is.

// RUN: neuroshard-opt %s --neuroshard-fuse-elementwise | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-fuse-elementwise --remarks-filter=neuroshard-fuse-elementwise --remark-format=emitRemark 2>&1 -o /dev/null | FileCheck %s --check-prefix=REMARK
// REMARK: [Passed] Fused | {{.*}} Remark="2 of 8 structured ops computed in the loops of their users"
// REMARK-NOT: remark

#row = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j, i)>
#left = affine_map<(i, k, j) -> (i, k)>
#right = affine_map<(i, k, j) -> (k, j)>
#out = affine_map<(i, k, j) -> (i, j)>

// CHECK-DAG: #[[TRANSPOSED:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>

// CHECK-LABEL: @bias_and_relu
// CHECK: linalg.generic
// CHECK: arith.addf
// CHECK-NEXT: arith.maximumf
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @bias_and_relu(%x: tensor<?x8xf32>, %bias: tensor<?x8xf32>, %empty: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %zero = arith.constant 0.0 : f32
  %sum = linalg.generic {indexing_maps = [#row, #row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias : tensor<?x8xf32>, tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<?x8xf32>
  %relu = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<?x8xf32>) outs(%empty : tensor<?x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<?x8xf32>
  return %relu : tensor<?x8xf32>
}

// CHECK-LABEL: @weights_as_torch_has_them
// CHECK-SAME: %[[X:.*]]: tensor<4x8xf32>, %[[W:.*]]: tensor<16x8xf32>
// CHECK: linalg.generic {indexing_maps = [{{.*}}, #[[TRANSPOSED]], {{.*}}]
// CHECK-SAME: ins(%[[X]], %[[W]]
// CHECK-NOT: linalg.generic
func.func @weights_as_torch_has_them(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %empty = tensor.empty() : tensor<8x16xf32>
  %t = linalg.generic {indexing_maps = [#column, #row], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<16x8xf32>) outs(%empty : tensor<8x16xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<8x16xf32>
  %0 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%x, %t : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %s, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// An exponential of 8 columns would be computed for each of the 16 of the product.
// CHECK-LABEL: @not_into_a_sum
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK: arith.mulf
func.func @not_into_a_sum(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %c: tensor<4x16xf32>) -> tensor<4x16xf32> {
  %empty = tensor.empty() : tensor<4x8xf32>
  %e = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.exp %a : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#left, #right, #out], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%e, %w : tensor<4x8xf32>, tensor<8x16xf32>) outs(%c : tensor<4x16xf32>) {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %r = arith.addf %s, %p : f32
    linalg.yield %r : f32
  } -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// A value with two users is computed once.
// CHECK-LABEL: @two_uses
// CHECK-COUNT-1: math.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @two_uses(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %empty = tensor.empty() : tensor<4x8xf32>
  %e = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = math.exp %a : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  %n = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%e : tensor<4x8xf32>) outs(%empty : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.negf %a : f32
    linalg.yield %m : f32
  } -> tensor<4x8xf32>
  return %e, %n : tensor<4x8xf32>, tensor<4x8xf32>
}
