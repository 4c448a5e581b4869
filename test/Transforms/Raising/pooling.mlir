// Sums, weights and means behind gathered rows become pooled lookups, and what cannot is named.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups=strict=true --split-input-file | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-raise-lookups --split-input-file -o /dev/null --remarks-filter-missed=neuroshard-raise-lookups --remark-format=emitRemark 2>&1 | FileCheck %s --check-prefix=MISSED

#rows = affine_map<(b, l, d) -> (b, l, d)>
#ids = affine_map<(b, l, d) -> (b, l)>
#sums = affine_map<(b, l, d) -> (b, d)>

// CHECK-LABEL: func.func @pooled(
// CHECK-SAME:    %[[IDS:.*]]: tensor<8x3x1xi64>, %[[W:.*]]: tensor<8x3xf32>)
// CHECK-DAG:     %[[PLAIN:.*]] = neuroshard.pack ids(%{{.*}} : tensor<24xi64>) offsets(%{{.*}} : tensor<9xi64>) : !ids
// CHECK-DAG:     %[[WEIGHTED:.*]] = neuroshard.pack {{.*}} weights(%{{.*}} : tensor<24xf32>)
// CHECK:         %[[MEAN:.*]] = neuroshard.lookup mean @table0[%[[PLAIN]], "ids1"] {stats = #neuroshard.feature<mean = 3.000000e+00, p99 = 3.000000e+00>}
// CHECK:         %[[SUM:.*]] = neuroshard.lookup sum @table0[%[[WEIGHTED]], "ids1_2"] weighted
// CHECK-NEXT:    return %[[MEAN]], %[[SUM]]
func.func @pooled(%t: tensor<100x4xf32>, %ids: tensor<8x3x1xi64>, %w: tensor<8x3xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %zeros = arith.constant dense<0.0> : tensor<8x4xf32>
  %threes = arith.constant dense<3.0> : tensor<8x4xf32>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<8x3x1xi64>) -> tensor<8x3x4xf32>
  %sums = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros : tensor<8x4xf32>) dimensions = [1]
  %means = arith.divf %sums, %threes : tensor<8x4xf32>
  %weighted = linalg.generic {indexing_maps = [#rows, #ids, #sums], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%rows, %w : tensor<8x3x4xf32>, tensor<8x3xf32>) outs(%zeros : tensor<8x4xf32>) {
  ^bb0(%x: f32, %weight: f32, %sum: f32):
    %y = arith.mulf %x, %weight : f32
    %s = arith.addf %sum, %y : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %means, %weighted : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// Ids in one dimension, whose rows then get two.
// CHECK-LABEL: func.func @reshaped(
// CHECK:         neuroshard.lookup sum @table0
// CHECK-NOT:     linalg.reduce
func.func @reshaped(%t: tensor<100x4xf32>, %ids: tensor<24x1xi64>) -> tensor<8x4xf32> {
  %zeros = arith.constant dense<0.0> : tensor<8x4xf32>
  %flat = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<24x1xi64>) -> tensor<24x4xf32>
  %rows = tensor.expand_shape %flat [[0, 1], [2]] output_shape [8, 3, 4] : tensor<24x4xf32> into tensor<8x3x4xf32>
  %sums = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros : tensor<8x4xf32>) dimensions = [1]
  return %sums : tensor<8x4xf32>
}

// -----

// Not poolings of a lookup: the rows are raised, the rest stays. Over the columns; over samples; not from
// zero; a maximum; in f16; a mean by another number.
// MISSED-DAG: remark: [Missed] NotPooled {{.*}} a bag is the last dimension of ids that have two or more; the sum is over dimension 2 of tensor<8x3x4xf32>
// MISSED-DAG: remark: [Missed] NotPooled {{.*}} the sum is over dimension 0 of tensor<8x3x4xf32>
// MISSED-DAG: remark: [Missed] NotPooled {{.*}} a mean divides by the number of ids of each bag, 3; the sum is raised and divided
// CHECK-LABEL: func.func @near(
// CHECK:         neuroshard.lookup unpooled @table0
// CHECK-NEXT:    tensor.expand_shape
// CHECK-NEXT:    linalg.reduce
// CHECK-NEXT:    linalg.reduce
// CHECK-NEXT:    linalg.reduce
// CHECK-NEXT:    linalg.reduce
// CHECK-NEXT:    neuroshard.lookup sum @table0
// CHECK-NEXT:    arith.divf
func.func @near(%t: tensor<100x4xf32>, %ids: tensor<8x3x1xi64>)
    -> (tensor<8x3xf32>, tensor<3x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %zeros83 = arith.constant dense<0.0> : tensor<8x3xf32>
  %zeros34 = arith.constant dense<0.0> : tensor<3x4xf32>
  %zeros84 = arith.constant dense<0.0> : tensor<8x4xf32>
  %ones = arith.constant dense<1.0> : tensor<8x4xf32>
  %twos = arith.constant dense<2.0> : tensor<8x4xf32>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<8x3x1xi64>) -> tensor<8x3x4xf32>
  %0 = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros83 : tensor<8x3xf32>) dimensions = [2]
  %1 = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros34 : tensor<3x4xf32>) dimensions = [0]
  %2 = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%ones : tensor<8x4xf32>) dimensions = [1]
  %3 = linalg.reduce {arith.maximumf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros84 : tensor<8x4xf32>) dimensions = [1]
  %4 = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf32>) outs(%zeros84 : tensor<8x4xf32>) dimensions = [1]
  %5 = arith.divf %4, %twos : tensor<8x4xf32>
  return %0, %1, %2, %3, %5 : tensor<8x3xf32>, tensor<3x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// MISSED: remark: [Missed] NotPooled {{.*}} it adds up in f16; lookups add in f32 and round once
// CHECK-LABEL: func.func @half(
// CHECK:         neuroshard.lookup unpooled @table0
// CHECK:         linalg.reduce
func.func @half(%t: tensor<100x4xf16>, %ids: tensor<8x3x1xi64>) -> tensor<8x4xf16> {
  %zeros = arith.constant dense<0.0> : tensor<8x4xf16>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf16>, tensor<8x3x1xi64>) -> tensor<8x3x4xf16>
  %sums = linalg.reduce {arith.addf} ins(%rows : tensor<8x3x4xf16>) outs(%zeros : tensor<8x4xf16>) dimensions = [1]
  return %sums : tensor<8x4xf16>
}
