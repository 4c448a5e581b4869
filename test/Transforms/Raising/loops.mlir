// Loops over samples, and over the ids of their bags, become lookups.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups=strict=true --split-input-file | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-raise-lookups="strict=true assume-valid-inputs=true jagged-arguments=true" --split-input-file | FileCheck %s --check-prefix=JAGGED

// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[IDS:.*]]: tensor<8xi64>)
// CHECK:         %[[J:.*]] = neuroshard.pack ids(%[[IDS]] : tensor<8xi64>)
// CHECK:         neuroshard.lookup unpooled @table0[%[[J]], "ids1"] : !ids -> tensor<8x4xf32>
// CHECK-NOT:     scf.forall
// JAGGED-LABEL: func.func @rows(
// JAGGED-SAME:    %[[IDS:.*]]: tensor<8xi64>) -> tensor<8x4xf32>
func.func @rows(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<8x4xf32> {
  %room = tensor.empty() : tensor<8x4xf32>
  %rows = scf.forall (%i) in (8) shared_outs(%out = %room) -> (tensor<8x4xf32>) {
    %id = tensor.extract %ids[%i] : tensor<8xi64>
    %x = arith.index_cast %id : i64 to index
    %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %row into %out[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    }
  }
  return %rows : tensor<8x4xf32>
}

// -----

// Offsets may begin anywhere, unless 'assume-valid-inputs' says that they begin at 0.
// CHECK-LABEL: func.func @bags(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?xi64>, %[[OFFSETS:.*]]: tensor<?xi64>)
// CHECK:         %[[FROM_ZERO:.*]] = tensor.generate
// CHECK:           tensor.extract %[[OFFSETS]]
// CHECK:           arith.subi
// CHECK:         %[[USED:.*]] = tensor.extract_slice %[[IDS]]
// CHECK:         %[[J:.*]] = neuroshard.pack ids(%[[USED]] : tensor<?xi64>) offsets(%[[FROM_ZERO]] : tensor<?xi64>)
// CHECK:         neuroshard.lookup sum @table0[%[[J]], "ids1"]
// JAGGED-LABEL: func.func @bags(
// JAGGED-SAME:    %[[J:.*]]: !ids) -> tensor<?x4xf32>
// JAGGED-NEXT:    %[[SUMS:.*]] = neuroshard.lookup sum @table0[%[[J]], "ids1"] : !ids -> tensor<?x4xf32>
// JAGGED-NEXT:    return %[[SUMS]]
func.func @bags(%t: tensor<100x4xf32>, %ids: tensor<?xi64>, %offsets: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %entries = tensor.dim %offsets, %c0 : tensor<?xi64>
  %n = arith.subi %entries, %c1 : index
  %room = tensor.empty(%n) : tensor<?x4xf32>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %room) -> tensor<?x4xf32> {
    %i1 = arith.addi %i, %c1 : index
    %first = tensor.extract %offsets[%i] : tensor<?xi64>
    %last = tensor.extract %offsets[%i1] : tensor<?xi64>
    %begin = arith.index_cast %first : i64 to index
    %end = arith.index_cast %last : i64 to index
    %sum = scf.for %j = %begin to %end step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %id = tensor.extract %ids[%j] : tensor<?xi64>
      %x = arith.index_cast %id : i64 to index
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
      %more = arith.addf %s, %row : tensor<1x4xf32>
      scf.yield %more : tensor<1x4xf32>
    }
    %next = tensor.insert_slice %sum into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    scf.yield %next : tensor<?x4xf32>
  }
  return %sums : tensor<?x4xf32>
}
