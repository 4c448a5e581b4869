// The formulas of momentum, AdamW, partial rowwise Adam and FTRL, where weight decay goes, clamped
// gradients and stochastic rounding.

// RUN: neuroshard-opt %s --neuroshard-lower-reference --split-input-file | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>

// L2: g + decay * w goes into the buffer, mu * buffer + g.
neuroshard.table @t : 10 x 3 x f32
  {optimizer = #neuroshard.optimizer<momentum, beta1 = 0.5, weight_decay = 0.25>}

// CHECK-LABEL: func.func @momentum(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK-SAME: %[[BUFFER:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"})
// CHECK: %[[OLD:.*]] = memref.load %[[W]]
// CHECK: %[[DECAY:.*]] = arith.constant 2.500000e-01 : f32
// CHECK: %[[DECAYED:.*]] = arith.mulf %[[DECAY]], %[[OLD]]
// CHECK: %[[G:.*]] = arith.addf %{{.*}}, %[[DECAYED]]
// CHECK: %[[MU:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: %[[BEFORE:.*]] = memref.load %[[BUFFER]]
// CHECK: %[[KEPT:.*]] = arith.mulf %[[MU]], %[[BEFORE]]
// CHECK: %[[NEW:.*]] = arith.addf %[[KEPT]], %[[G]]
// CHECK: memref.store %[[NEW]], %[[BUFFER]]
// CHECK: %[[STEP:.*]] = arith.mulf %[[LR]], %[[NEW]]
// CHECK: arith.subf %{{.*}}, %[[STEP]]
func.func @momentum(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// Decoupled: weights times 1 - lr * decay, before Adam's step of the corrected size.
neuroshard.table @t : 10 x 3 x f32
  {optimizer = #neuroshard.optimizer<adamw, weight_decay = 0.5>}

// CHECK-LABEL: func.func @adamw(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK: math.powf
// CHECK: math.powf
// CHECK: %[[SIZE:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: %[[RATE:.*]] = arith.extf %[[LR]]
// CHECK: %[[DECAY:.*]] = arith.constant 5.000000e-01 : f64
// CHECK: %[[LOST:.*]] = arith.mulf %[[RATE]], %[[DECAY]]
// CHECK: %[[ONE:.*]] = arith.constant 1.000000e+00 : f64
// CHECK: %[[SHARE:.*]] = arith.subf %[[ONE]], %[[LOST]]
// CHECK: %[[KEPT:.*]] = arith.truncf %[[SHARE]] : f64 to f32
// CHECK: %[[STEP:.*]] = arith.mulf %[[SIZE]], %{{.*}}
// CHECK: %[[OLD:.*]] = memref.load %[[W]]
// CHECK: %[[REST:.*]] = arith.mulf %[[KEPT]], %[[OLD]]
// CHECK: %[[NEW:.*]] = arith.subf %[[REST]], %[[STEP]]
// CHECK: memref.store %[[NEW]], %[[W]]
func.func @adamw(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// A first moment per element, a second one per row: of the mean of the squares.
neuroshard.table @t : 10 x 3 x f32
  {optimizer = #neuroshard.optimizer<partial_rowwise_adam, eps = 0.5>}

// CHECK-LABEL: func.func @partial(
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK-SAME: %[[FIRST:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"},
// CHECK-SAME: %[[SECOND:[a-z0-9]*]]: memref<10xf32> {neuroshard.state = "t"})
// CHECK: %[[SIZE:.*]] = arith.truncf %{{.*}} : f64 to f32
// CHECK: %[[NORM:.*]] = scf.for
// CHECK: %[[DIM:.*]] = arith.constant 3.000000e+00 : f32
// CHECK: %[[MEAN:.*]] = arith.divf %[[NORM]], %[[DIM]]
// CHECK: %[[BEFORE:.*]] = memref.load %[[SECOND]][%[[ROW:.*]]]
// CHECK: %[[KEPT:.*]] = arith.mulf %{{.*}}, %[[BEFORE]]
// CHECK: %[[ADDED:.*]] = arith.mulf %{{.*}}, %[[MEAN]]
// CHECK: %[[V:.*]] = arith.addf %[[KEPT]], %[[ADDED]]
// CHECK: memref.store %[[V]], %[[SECOND]][%[[ROW]]]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[V]]
// CHECK: %[[BOTTOM:.*]] = arith.addf %[[ROOT]]
// CHECK: %[[FACTOR:.*]] = arith.divf %[[SIZE]], %[[BOTTOM]]
// CHECK: memref.load %[[FIRST]]
// CHECK: %[[M:.*]] = arith.addf
// CHECK: memref.store %[[M]], %[[FIRST]]
// CHECK: %[[STEP:.*]] = arith.mulf %[[FACTOR]], %[[M]]
// CHECK: arith.subf %{{.*}}, %[[STEP]]
func.func @partial(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// FTRL: 0 where |z'| <= l1, else (sign(z') * l1 - z') / ((sqrt(n') + eps) / lr + l2).
neuroshard.table @t : 10 x 3 x f32
  {optimizer = #neuroshard.optimizer<ftrl, eps = 1.0, l1_penalty = 0.5, l2_penalty = 0.25>}

// CHECK-LABEL: func.func @ftrl(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK-SAME: %[[SUM:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"},
// CHECK-SAME: %[[LINEAR:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"})
// CHECK: %[[OLD:.*]] = memref.load %[[SUM]]
// CHECK: %[[NEW:.*]] = arith.addf %[[OLD]]
// CHECK: memref.store %[[NEW]], %[[SUM]]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[NEW]]
// CHECK: %[[BEFORE:.*]] = math.sqrt %[[OLD]]
// CHECK: %[[MORE:.*]] = arith.subf %[[ROOT]], %[[BEFORE]]
// CHECK: %[[SIGMA:.*]] = arith.divf %[[MORE]], %[[LR]]
// CHECK: %[[WEIGHT:.*]] = memref.load %[[W]]
// CHECK: %[[MOVED:.*]] = arith.mulf %[[SIGMA]], %[[WEIGHT]]
// CHECK: %[[Z:.*]] = arith.subf %{{.*}}, %[[MOVED]]
// CHECK: memref.store %[[Z]], %[[LINEAR]]
// CHECK: %[[L1:.*]] = arith.constant 5.000000e-01 : f32
// CHECK: %[[SIZE:.*]] = math.absf %[[Z]]
// CHECK: %[[BEYOND:.*]] = arith.cmpf ugt, %[[SIZE]], %[[L1]]
// CHECK: %[[EDGE:.*]] = math.copysign %[[L1]], %[[Z]]
// CHECK: %[[TOP:.*]] = arith.subf %[[EDGE]], %[[Z]]
// CHECK: %[[STEP:.*]] = arith.divf %[[TOP]]
// CHECK: %[[RESULT:.*]] = arith.select %[[BEYOND]], %[[STEP]]
// CHECK: memref.store %[[RESULT]], %[[W]]
func.func @ftrl(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// Gradients are clamped, and weights of bf16 rounded at random.
neuroshard.table @t : 10 x 3 x bf16
  {optimizer = #neuroshard.optimizer<sgd, max_gradient = 2.0, stochastic_rounding>}

// CHECK-LABEL: func.func @rounded(
// CHECK: %[[SEED:.*]] = arith.trunci %{{.*}} : i64 to i32
// CHECK: %[[BELOW:.*]] = arith.minimumf
// CHECK: %[[G:.*]] = arith.maximumf %[[BELOW]]
// CHECK: %[[NEW:.*]] = arith.subf
// CHECK: %[[BITS:.*]] = arith.bitcast %[[NEW]]
// CHECK: %[[OFG:.*]] = arith.bitcast %[[G]]
// CHECK: arith.xori %[[OFG]], %[[SEED]]
// CHECK: arith.addi %[[BITS]]
// CHECK: arith.select
// CHECK: arith.truncf
func.func @rounded(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// LAMB: moments first, then |w| / |r| with r = m^ / (sqrt(v^) + eps) + decay * w, then the weights.
neuroshard.table @t : 10 x 3 x f32 {optimizer = #neuroshard.optimizer<lamb, weight_decay = 0.5>}

// CHECK-LABEL: func.func @lamb(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK-SAME: %[[M:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"},
// CHECK-SAME: %[[V:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.state = "t"})
// CHECK: memref.store %{{.*}}, %[[M]]
// CHECK: memref.store %{{.*}}, %[[V]]
// CHECK: %[[NORM:.*]] = math.sqrt %{{.*}} : f32
// CHECK: %[[OFR:.*]] = math.sqrt %{{[a-z0-9#]*}} : f32
// CHECK: arith.select
// CHECK: memref.store %{{.*}}, %[[W]]
func.func @lamb(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>

// Row-wise Adagrad with counter: the row's states first, then the weights by two factors.
neuroshard.table @t : 10 x 3 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.0, weight_decay = 0.5>}

// CHECK-LABEL: func.func @counted(
// CHECK-SAME: %[[LR:[a-z0-9]*]]: f32
// CHECK-SAME: %[[W:[a-z0-9]*]]: memref<10x3xf32> {neuroshard.weights = "t"},
// CHECK-SAME: %[[SUM:[a-z0-9]*]]: memref<10xf32> {neuroshard.state = "t"},
// CHECK-SAME: %[[LAST:[a-z0-9]*]]: memref<10xf32> {neuroshard.state = "t"},
// CHECK-SAME: %[[COUNT:[a-z0-9]*]]: memref<10xf32> {neuroshard.state = "t"})
// CHECK: math.powf %{{.*}} : f64
// CHECK: memref.store %{{.*}}, %[[LAST]]
// CHECK: memref.store %{{.*}}, %[[COUNT]]
// CHECK: memref.store %{{.*}}, %[[SUM]]
// CHECK: memref.store %{{.*}}, %[[W]]
func.func @counted(%ids: !ids, %g: tensor<?x3xf32>, %lr: f32, %step: i64) {
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%ids : !ids) gradients(%g : tensor<?x3xf32>) learning_rate %lr step %step
  return
}
