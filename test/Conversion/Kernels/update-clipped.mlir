// Elements of a row's summed gradient are clamped before weight decay and norms; the second phase of
// a two-phase update reads clamped ones.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=sgd weight-decay=0.25 max-gradient=2" --canonicalize --cse | FileCheck %s --check-prefix=UPDATE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 optimizer=rowwise_adagrad max-gradient=2" --canonicalize --cse | FileCheck %s --check-prefix=REDUCE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=rowwise_adagrad max-gradient=2" --canonicalize --cse | FileCheck %s --check-prefix=APPLY

module {}

// UPDATE: func.func private @nsk_update_sgd_f32_d16_d3fd0000000000000_c4000000000000000(
// UPDATE-DAG: %[[LOW:.*]] = arith.constant dense<-2.000000e+00> : vector<16xf32>
// UPDATE-DAG: %[[HIGH:.*]] = arith.constant dense<2.000000e+00> : vector<16xf32>
// UPDATE: %[[SUM:.*]] = scf.for
// UPDATE: scf.yield
// UPDATE: %[[BELOW:.*]] = arith.minimumf %[[SUM]], %[[HIGH]]
// UPDATE: %[[G:.*]] = arith.maximumf %[[BELOW]], %[[LOW]]
// UPDATE: %[[DECAY:.*]] = arith.mulf
// UPDATE: arith.addf %[[G]], %[[DECAY]]

// REDUCE: func.func private @nsk_reduce_d16_c4000000000000000(
// REDUCE: %[[SUM:.*]] = scf.for
// REDUCE: scf.yield
// REDUCE: %[[BELOW:.*]] = arith.minimumf %[[SUM]]
// REDUCE: %[[G:.*]] = arith.maximumf %[[BELOW]]
// REDUCE: vector.transfer_write %[[G]]
// REDUCE: arith.mulf %[[G]], %[[G]]

// APPLY: func.func private @nsk_apply_rowwise_adagrad_f32_d16
// APPLY-NOT: minimumf
