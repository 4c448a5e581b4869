// Rows longer than a block of 256 columns: a loop over the full blocks, then the rest;
// no more than 16 accumulators are live at a time.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=600" --canonicalize --cse | FileCheck %s
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=256" --canonicalize --cse | FileCheck %s --check-prefix=ONE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=600 optimizer=rowwise_adagrad" --canonicalize --cse | FileCheck %s --check-prefix=TWICE

module {}

// 600 = 2 x 256 + 88, and 88 = 5 x 16 + 8.
// CHECK-LABEL: func.func private @nsk_lookup_sum_f32_d600_i64(
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : index
// CHECK-DAG: %[[C256:.*]] = arith.constant 256 : index
// CHECK-DAG: %[[C512:.*]] = arith.constant 512 : index
// CHECK: scf.parallel
// CHECK: scf.for %[[COLUMN:.*]] = %[[C0]] to %[[C512]] step %[[C256]]
// CHECK: %{{.*}}:16 = scf.for
// CHECK-COUNT-16: arith.addf {{.*}} : vector<16xf32>
// CHECK: scf.yield
// CHECK-COUNT-16: vector.transfer_write
// CHECK: %{{.*}}:6 = scf.for
// CHECK-COUNT-5: arith.addf {{.*}} : vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: scf.yield
// CHECK-COUNT-6: vector.transfer_write

// ONE-LABEL: func.func private @nsk_lookup_sum_f32_d256_i64(
// ONE: scf.parallel
// ONE-COUNT-1: scf.for
// ONE-NOT: scf.for

// The gradient is summed for the norm and again for the weights: both passes have the
// loop over full blocks, the sum in it, and the sum of the rest.
// TWICE-LABEL: func.func private @nsk_update_rowwise_adagrad_f32_d600_of600
// TWICE: scf.parallel
// TWICE-COUNT-3: scf.for
// TWICE: math.sqrt
// TWICE-COUNT-3: scf.for
// TWICE-NOT: scf.for
