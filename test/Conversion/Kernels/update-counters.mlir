// Row-wise Adagrad with counter. Decoupled decay multiplies weights by 1 - halflife / count * decay * lr,
// where the count has halved with the steps since the row's last one. L2 decay is in the gradient of the
// norm alone. AdagradW catches up with whole powers. docs/kernels.md has the formulas.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=rowwise_adagrad_with_counter counter-halflife=1 weight-decay=0.5 weight-decay-mode=decoupled" --canonicalize --cse | FileCheck %s --check-prefix=DECOUPLED
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 optimizer=rowwise_adagrad_with_counter counter-halflife=1 weight-decay=0.5" --canonicalize --cse | FileCheck %s --check-prefix=REDUCE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=rowwise_adagrad_with_counter weight-decay=0.5 weight-decay-mode=adagradw adjustment-iter=4" --canonicalize --cse | FileCheck %s --check-prefix=ADAGRADW
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=rowwise_adagrad_with_counter weight-decay=0.5" 2>&1 | FileCheck %s --check-prefix=HALFLIFE
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=rowwise_adagrad_with_counter adjustment-iter=-2" 2>&1 | FileCheck %s --check-prefix=ITER

module {}

// DECOUPLED: func.func private @nsk_update_rowwise_adagrad_with_counter_f32_d16_of16_e3e45798ee2308c3a_decoupled_h3ff0000000000000_ibff0000000000000_u3ff0000000000000_d3fe0000000000000(
// DECOUPLED-SAME: %[[SUMS:[^:]*]]: memref<1099511627776xf32>
// DECOUPLED-SAME: %[[LASTS:[^:]*]]: memref<1099511627776xf32>
// DECOUPLED-SAME: %[[COUNTS:[^:]*]]: memref<1099511627776xf32>
// DECOUPLED-SAME: %[[LR:[a-z0-9]*]]: f32, %{{[a-z0-9]*}}: f32, %{{[a-z0-9]*}}: i32, %{{[a-z0-9]*}}: f32, %{{[a-z0-9]*}}: f32, %[[STEP:[a-z0-9]*]]: f32
// DECOUPLED-DAG: %[[HALF:.*]] = arith.constant 5.000000e-01 : f64
// DECOUPLED: memref.load %[[SUMS]]
// DECOUPLED: %[[LAST:.*]] = memref.load %[[LASTS]]
// DECOUPLED: %[[COUNT:.*]] = memref.load %[[COUNTS]]
// DECOUPLED: arith.subf %[[STEP]], %[[LAST]]
// DECOUPLED: %[[POWER:.*]]:3 = scf.for {{.*}} iter_args({{.*}} = %{{.*}}, {{.*}} = %[[HALF]], {{.*}})
// DECOUPLED: %[[LEFT:.*]] = arith.truncf %[[POWER]]#0 : f64 to f32
// DECOUPLED: %[[NOW:.*]] = arith.mulf %[[LEFT]], %[[COUNT]]
// DECOUPLED: %[[SHARE:.*]] = arith.divf
// DECOUPLED: %[[LOST:.*]] = arith.mulf %{{.*}}, %[[LR]]
// DECOUPLED: %[[KEPT:.*]] = arith.subf %{{.*}}, %[[LOST]]
// DECOUPLED: vector.transfer_write %{{.*}}, %[[SUMS]]
// DECOUPLED: vector.transfer_write %{{.*}}, %[[LASTS]]
// DECOUPLED: vector.transfer_write %{{.*}}, %[[COUNTS]]
// DECOUPLED: vector.broadcast %[[KEPT]]

// REDUCE: func.func private @nsk_reduce_rowwise_adagrad_with_counter_f32_d16_of16_{{.*}}_l2_h
// REDUCE: %[[SUM:.*]] = scf.for
// REDUCE: %[[DECAYED:.*]] = arith.addf %[[SUM]], %{{.*}} : vector<16xf32>
// REDUCE: vector.transfer_write %[[SUM]], %{{.*}}
// REDUCE: arith.mulf %[[DECAYED]], %[[DECAYED]]

// A power for the steps without the row; neither matters before step 5.
// ADAGRADW: %[[LATE:.*]]:3 = scf.for
// ADAGRADW: arith.truncf %[[LATE]]#0
// ADAGRADW: arith.cmpf ogt
// ADAGRADW: arith.select
// ADAGRADW: arith.select

// HALFLIFE: error: counter_halflife: must be above 0 under l2 and decoupled weight decay
// ITER: error: adjustment_iter: must be at least -1, got: -2
