// Rows that tensor and linalg ops gather become unpooled lookups.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups=strict=true --split-input-file | FileCheck %s

// The table has the name of the argument, which goes. Offsets count one id for each sample.
// CHECK:       neuroshard.table private @user : 100 x 4 x f32
// CHECK-LABEL: func.func @gather(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?x1xi64>) -> tensor<?x4xf32>
// CHECK:         %[[FLAT:.*]] = tensor.collapse_shape %[[IDS]]
// CHECK:         %[[OFFSETS:.*]] = tensor.generate
// CHECK:         %[[J:.*]] = neuroshard.pack ids(%[[FLAT]] : tensor<?xi64>) offsets(%[[OFFSETS]] : tensor<?xi64>) : !ids
// CHECK:         %[[ROWS:.*]] = neuroshard.lookup unpooled @user[%[[J]], "clicks"] : !ids -> tensor<?x4xf32>
// CHECK-NEXT:    return %[[ROWS]]
func.func @gather(%user: tensor<100x4xf32> loc("user"), %ids: tensor<?x1xi64> loc("clicks")) -> tensor<?x4xf32> {
  %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

// An argument without a name gives its number. Rows have the shape of the ids again.
// CHECK:       neuroshard.table private @table1 : 100 x 4 x f16
// CHECK-LABEL: func.func @generic(
// CHECK-SAME:    %[[IDS:.*]]: tensor<5x3xi32>)
// CHECK:         neuroshard.pack ids(%{{.*}} : tensor<15xi32>) offsets(%{{.*}} : tensor<6xi64>)
// CHECK:         %[[ROWS:.*]] = neuroshard.lookup unpooled @table1{{.*}} -> tensor<15x4xf16>
// CHECK:         tensor.expand_shape %[[ROWS]] {{\[}}[0, 1], [2]{{\]}} output_shape [5, 3, 4]
// CHECK-NOT:     linalg.generic
func.func @generic(%ids: tensor<5x3xi32>, %t: tensor<100x4xf16>) -> tensor<5x3x4xf16> {
  %room = tensor.empty() : tensor<5x3x4xf16>
  %rows = linalg.generic {indexing_maps = [affine_map<(b, l, d) -> (b, l)>, affine_map<(b, l, d) -> (b, l, d)>],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<5x3xi32>) outs(%room : tensor<5x3x4xf16>) {
  ^bb0(%id: i32, %out: f16):
    %i = arith.index_cast %id : i32 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf16>
    linalg.yield %x : f16
  } -> tensor<5x3x4xf16>
  return %rows : tensor<5x3x4xf16>
}

// -----

// What computes an index from an id stays, for all ids at once: here it moves them into the table.
// CHECK-LABEL: func.func @clamped(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?xi64>)
// CHECK:         %[[ROWS:.*]] = linalg.generic {{.*}} iterator_types = ["parallel"]} ins(%[[IDS]] : tensor<?xi64>)
// CHECK:           arith.maxsi
// CHECK-NEXT:      arith.minsi
// CHECK-NEXT:      arith.index_cast
// CHECK-NEXT:      linalg.yield
// CHECK:         neuroshard.pack ids(%[[ROWS]] : tensor<?xi64>)
// CHECK:         neuroshard.lookup unpooled @table0
func.func @clamped(%t: tensor<100x4xf32>, %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c99 = arith.constant 99 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %room = tensor.empty(%n) : tensor<?x4xf32>
  %rows = linalg.generic {indexing_maps = [affine_map<(b, d) -> (b)>, affine_map<(b, d) -> (b, d)>],
      iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<?xi64>) outs(%room : tensor<?x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %raw = arith.index_cast %id : i64 to index
    %above = arith.maxsi %raw, %c0 : index
    %i = arith.minsi %above, %c99 : index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

// A global whose values are elsewhere is a table by its name; lookups of the same ids share a feature,
// and sizes of a table are constants.
// CHECK:       neuroshard.table private @w : 100 x 4 x f32
// CHECK-NOT:   ml_program.global
// CHECK-LABEL: func.func @first(
// CHECK:         neuroshard.lookup unpooled @w
// CHECK-LABEL: func.func @second(
// CHECK:         %[[J:.*]] = neuroshard.pack
// CHECK-NOT:     neuroshard.pack
// CHECK:         %[[ROWS:.*]] = neuroshard.lookup unpooled @w[%[[J]], "ids0"]
// CHECK:         %[[OTHERS:.*]] = neuroshard.lookup unpooled @table1[%[[J]], "ids0"]
// CHECK:         return %[[ROWS]], %[[OTHERS]], %c100
ml_program.global private @w(#ml_program.extern<tensor<100x4xf32>>) : tensor<100x4xf32>
func.func @first(%ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %t = ml_program.global_load_const @w : tensor<100x4xf32>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}
func.func @second(%ids: tensor<?x1xi64>, %u: tensor<50x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>, index) {
  %c0 = arith.constant 0 : index
  %t = ml_program.global_load_const @w : tensor<100x4xf32>
  %cast = tensor.cast %t : tensor<100x4xf32> to tensor<?x4xf32>
  %size = tensor.dim %cast, %c0 : tensor<?x4xf32>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %others = tensor.gather %u[%ids] gather_dims([0]) : (tensor<50x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows, %others, %size : tensor<?x4xf32>, tensor<?x4xf32>, index
}

// -----

// A module without anything to raise does not change.
// CHECK-LABEL: func.func @other(
// CHECK-NEXT:    %[[X:.*]] = tensor.extract
// CHECK-NEXT:    return %[[X]]
func.func @other(%t: tensor<100x4xf32>, %i: index) -> f32 {
  %x = tensor.extract %t[%i, %i] : tensor<100x4xf32>
  return %x : f32
}
