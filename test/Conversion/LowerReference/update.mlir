// Only functions that update a table get its optimizer state, after its weights; the
// formulas of each optimizer.

// RUN: neuroshard-opt %s --neuroshard-lower-reference --split-input-file | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64, weighted>

neuroshard.table @sgd : 10 x 3 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table @adam : 20 x 3 x f32 {optimizer = #neuroshard.optimizer<adam>}

// CHECK-LABEL: func.func @update(
// CHECK-SAME: %{{.*}}: f32, %{{.*}}: i64,
// CHECK-SAME: memref<10x3xf32> {neuroshard.weights = "sgd"},
// CHECK-SAME: memref<20x3xf32> {neuroshard.weights = "adam"},
// CHECK-SAME: memref<20x3xf32> {neuroshard.state = "adam"},
// CHECK-SAME: memref<20x3xf32> {neuroshard.state = "adam"})
func.func @update(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @sgd [#neuroshard.lookup<sum @sgd["a"] weighted>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  neuroshard.update @adam [#neuroshard.lookup<sum @adam["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// The gradient of the sample weights needs weights only.
// CHECK-LABEL: func.func @weights_gradient(
// CHECK-SAME: memref<20x3xf32> {neuroshard.weights = "adam"}) -> tensor<?xf32>
func.func @weights_gradient(%ids: !ids, %g: tensor<?x3xf32>) -> tensor<?xf32> {
  %r = neuroshard.weights_gradient %ids [#neuroshard.lookup<sum @adam["a"] weighted>]
    gradients(%g) : !ids, tensor<?x3xf32> -> tensor<?xf32>
  return %r : tensor<?xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// One accumulator per row; the mean over the columns; the root gets eps.
neuroshard.table @t : 10 x 3 x f16
  {optimizer = #neuroshard.optimizer<rowwise_adagrad, eps = 0.5>}

// CHECK-LABEL: func.func @rowwise(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf16> {neuroshard.weights = "t"},
// CHECK-SAME: %[[STATE:[a-z0-9]*]]: memref<10xf32> {neuroshard.state = "t"}
// CHECK: %[[NORM:.*]] = scf.for
// CHECK: %[[DIM:.*]] = arith.constant 3.000000e+00 : f32
// CHECK: %[[MEAN:.*]] = arith.divf %[[NORM]], %[[DIM]]
// CHECK: %[[OLD:.*]] = memref.load %[[STATE]][%[[ROW:.*]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[OLD]], %[[MEAN]]
// CHECK: memref.store %[[SUM]], %[[STATE]][%[[ROW]]]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[SUM]]
// CHECK: %[[EPS:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: %[[BOTTOM:.*]] = arith.addf %[[ROOT]], %[[EPS]]
// CHECK: %[[FACTOR:.*]] = arith.divf %[[LR]], %[[BOTTOM]]
// CHECK: %[[DELTA:.*]] = arith.mulf %[[FACTOR]]
// CHECK: %[[W16:.*]] = memref.load %[[W]]
// CHECK: %[[W32:.*]] = arith.extf %[[W16]]
// CHECK: %[[NEW:.*]] = arith.subf %[[W32]], %[[DELTA]]
// CHECK: %[[NEW16:.*]] = arith.truncf %[[NEW]] : f32 to f16
// CHECK: memref.store %[[NEW16]], %[[W]]
func.func @rowwise(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}
