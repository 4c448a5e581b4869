// Ids of which a jagged argument could have another number than the lookup needs stay tensors.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups="strict=true jagged-arguments=true" --split-input-file --remarks-filter=neuroshard-raise-lookups --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: FileCheck %s --input-file=%t

// MISSED-DAG: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: they have 3 dimensions; expected samples and the ids of each
// MISSED-DAG: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: rows that are not pooled need the number of ids that each sample has
// MISSED-DAG: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: rows that are not pooled have a known number

// CHECK-LABEL: func.func @bags_of_bags(
// CHECK-SAME:    tensor<?x2x3xi64>)
// CHECK:         neuroshard.lookup sum
func.func @bags_of_bags(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x2x3xi64> loc("ids")) -> (tensor<?x2x4xf32>) {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %ids, %c0 : tensor<?x2x3xi64>
  %e = tensor.empty(%n) : tensor<?x2x4xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<?x2x4xf32>) -> tensor<?x2x4xf32>
  %r = linalg.generic {indexing_maps=[affine_map<(b,s,l,d)->(b,s,l)>, affine_map<(b,s,l,d)->(b,s,d)>], iterator_types=["parallel","parallel","reduction","parallel"]} ins(%ids: tensor<?x2x3xi64>) outs(%f: tensor<?x2x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 3 : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    %a = arith.addf %o, %v : f32
    linalg.yield %a : f32
  } -> tensor<?x2x4xf32>
  return %r : tensor<?x2x4xf32>
}

// -----

// CHECK-LABEL: func.func @some_each(
// CHECK-SAME:    tensor<?x3xi64>)
// CHECK:         neuroshard.lookup unpooled
func.func @some_each(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x3xi64> loc("ids")) -> (tensor<?x3x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?x3xi64>
  %e3 = tensor.empty(%n) : tensor<?x3x4xf32>
  %rows = linalg.generic {indexing_maps=[affine_map<(b,l,d)->(b,l)>, affine_map<(b,l,d)->(b,l,d)>], iterator_types=["parallel","parallel","parallel"]} ins(%ids: tensor<?x3xi64>) outs(%e3: tensor<?x3x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x3x4xf32>
  return %rows : tensor<?x3x4xf32>
}

// -----

// CHECK-LABEL: func.func @known(
// CHECK-SAME:    tensor<8x1xi64>)
// CHECK:         neuroshard.lookup unpooled
func.func @known(%t: tensor<23x4xf32>, %ids: tensor<8x1xi64>) -> tensor<8x4xf32> {
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<8x1xi64>) -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// One id of each sample, in a dimension of its own: all sizes are the number of ids.
// CHECK-LABEL: func.func @one_each(
// CHECK-SAME:    %[[J:.*]]: !ids)
// CHECK:         %[[N:.*]] = neuroshard.num_ids %[[J]]
// CHECK:         %[[ROWS:.*]] = neuroshard.lookup unpooled @t[%[[J]]
// CHECK:         return %[[ROWS]], %[[N]]
func.func @one_each(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x1xi64>) -> (tensor<?x4xf32>, index) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?x1xi64>
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %r, %n : tensor<?x4xf32>, index
}
