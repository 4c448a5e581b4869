// A row that catches up stays in registers over the steps from those it has taken (its last state) to the step
// itself, which alone has a gradient; step sizes come from the history, 3 values of each step.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=momentum weight-decay=0.5 weight-decay-mode=decoupled catch-up" --canonicalize --cse | FileCheck %s
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=rowwise_adagrad catch-up" 2>&1 | FileCheck %s --check-prefix=ROWWISE

module {}

// CHECK: func.func private @nsk_update_momentum_f32_d16_b3feccccccccccccd_decoupled_catchup(
// CHECK-SAME: %[[TAKEN:[^:]*]]: memref<1099511627776xf32> {llvm.noalias}
// CHECK-SAME: %[[STEP:[^:]*]]: f32, %[[HISTORY:[^:]*]]: memref<1099511627776xf32> {llvm.noalias, llvm.readonly}, %{{[^:]*}}: i64, %{{[^:]*}}: i64)
// CHECK: %[[LOADED:.*]] = memref.load %[[TAKEN]]
// CHECK: arith.fptosi %[[LOADED]]
// CHECK: %[[G:.*]] = scf.for
// CHECK: scf.yield
// CHECK: %[[MISSED:.*]]:2 = scf.for
// CHECK: memref.load %[[HISTORY]]
// CHECK: memref.load %[[HISTORY]]
// CHECK: scf.yield
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[MISSED]]#0, %{{.*}} = %[[MISSED]]#1)
// CHECK: arith.addf %{{.*}}, %[[G]]
// CHECK: vector.transfer_write
// CHECK: vector.transfer_write
// CHECK: arith.addf %[[STEP]],
// CHECK: vector.transfer_write %{{.*}}, %[[TAKEN]]

// ROWWISE: is of sgd, adagrad, adam, momentum and adamw
