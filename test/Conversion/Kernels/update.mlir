// Optimizer kernels: the formulas of docs/kernels.md in f32, one rounding per
// operation, on the summed gradient of each unique row.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=sgd weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=SGD
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 element=f16 optimizer=adagrad" --canonicalize --cse | FileCheck %s --check-prefix=ADAGRAD
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=rowwise_adagrad table-dim=64" --canonicalize --cse | FileCheck %s --check-prefix=ROWWISE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=adam" --canonicalize --cse | FileCheck %s --check-prefix=ADAM
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 weighted=true" --canonicalize --cse | FileCheck %s --check-prefix=REDUCE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=rowwise_adagrad table-dim=64" --canonicalize --cse | FileCheck %s --check-prefix=APPLY

module {}

// w - lr * (g + decay * w)
// SGD: func.func private @nsk_update_sgd_f32_d16_d3fd0000000000000(
// SGD-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{.*}}: i32, %{{.*}}: f32, %{{.*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{.*}}: i64)
// SGD-DAG: %[[DECAY:.*]] = arith.constant dense<2.500000e-01> : vector<16xf32>
// SGD: scf.parallel
// SGD: memref.prefetch {{.*}}, write, locality<2>, data
// SGD: %[[SUM:.*]] = scf.for
// SGD: memref.prefetch {{.*}}, read, locality<2>, data
// SGD: scf.yield
// SGD: %[[W:.*]] = vector.transfer_read
// SGD: %[[DW:.*]] = arith.mulf %[[W]], %[[DECAY]]
// SGD: %[[G:.*]] = arith.addf %[[SUM]], %[[DW]]
// SGD: %[[STEP:.*]] = vector.broadcast %[[LR]]
// SGD: %[[D:.*]] = arith.mulf %[[STEP]], %[[G]]
// SGD: %[[NEW:.*]] = arith.subf %[[W]], %[[D]]
// SGD: vector.transfer_write %[[NEW]]

// s + g * g; w - lr * (g / (sqrt(s) + eps)); weights rounded to f16 once.
// ADAGRAD: func.func private @nsk_update_adagrad_f16_d16_e3e45798ee2308c3a(
// ADAGRAD: %[[G:.*]] = scf.for
// ADAGRAD: scf.yield
// ADAGRAD: %[[S:.*]] = vector.transfer_read {{.*}}vector<16xf32>
// ADAGRAD: %[[W:.*]] = arith.extf
// ADAGRAD: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// ADAGRAD: %[[NEWS:.*]] = arith.addf %[[S]], %[[GG]]
// ADAGRAD: %[[ROOT:.*]] = math.sqrt %[[NEWS]]
// ADAGRAD: %[[DEN:.*]] = arith.addf %[[ROOT]],
// ADAGRAD: %[[Q:.*]] = arith.divf %[[G]], %[[DEN]]
// ADAGRAD: %[[D:.*]] = arith.mulf {{.*}}, %[[Q]]
// ADAGRAD: %[[NEW:.*]] = arith.subf %[[W]], %[[D]]
// ADAGRAD: vector.transfer_write %[[NEWS]]
// ADAGRAD: %[[HALF:.*]] = arith.truncf %[[NEW]] : vector<16xf32> to vector<16xf16>
// ADAGRAD: vector.transfer_write %[[HALF]]

// s + |g|^2 / 64 (the table's columns); w - (lr / (sqrt(s) + eps)) * g
// ROWWISE: func.func private @nsk_update_rowwise_adagrad_f32_d16_of64_e3e45798ee2308c3a(
// ROWWISE-SAME: %[[STATE:[^:]*]]: memref<1099511627776xf32> {llvm.noalias}
// ROWWISE-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// ROWWISE-DAG: %[[COLUMNS:.*]] = arith.constant 6.400000e+01 : f32
// ROWWISE: %[[G:.*]] = scf.for
// ROWWISE: scf.yield
// ROWWISE: %[[W:.*]] = vector.transfer_read
// ROWWISE: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// ROWWISE: %[[NORM:.*]] = vector.reduction <add>,
// ROWWISE: %[[MEAN:.*]] = arith.divf %[[NORM]], %[[COLUMNS]] : f32
// ROWWISE: %[[NEWS:.*]] = arith.addf {{.*}}, %[[MEAN]] : f32
// ROWWISE: %[[ROOT:.*]] = math.sqrt %[[NEWS]] : f32
// ROWWISE: %[[DEN:.*]] = arith.addf %[[ROOT]], {{.*}} : f32
// ROWWISE: %[[FACTOR:.*]] = arith.divf %[[LR]], %[[DEN]] : f32
// ROWWISE: %[[SPREAD:.*]] = vector.broadcast %[[FACTOR]]
// ROWWISE: %[[D:.*]] = arith.mulf %[[SPREAD]], %[[G]]
// ROWWISE: arith.subf %[[W]], %[[D]]

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g g; w - step * (m / (sqrt(v) + eps))
// ADAM: func.func private @nsk_update_adam_f32_d16_b3feccccccccccccd_b3feff7ced916872b_e3e45798ee2308c3a(
// ADAM-DAG: %[[B1:.*]] = arith.constant dense<0.899999976> : vector<16xf32>
// ADAM-DAG: %[[C1:.*]] = arith.constant dense<1.000000e-01> : vector<16xf32>
// ADAM-DAG: %[[B2:.*]] = arith.constant dense<9.990000e-01> : vector<16xf32>
// ADAM-DAG: %[[C2:.*]] = arith.constant dense<1.000000e-03> : vector<16xf32>
// ADAM: %[[G:.*]] = scf.for
// ADAM: scf.yield
// ADAM: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// ADAM: %[[MA:.*]] = arith.mulf %{{.*}}, %[[B1]]
// ADAM: %[[MB:.*]] = arith.mulf %[[G]], %[[C1]]
// ADAM: %[[M:.*]] = arith.addf %[[MA]], %[[MB]]
// ADAM: %[[VA:.*]] = arith.mulf %{{.*}}, %[[B2]]
// ADAM: %[[VB:.*]] = arith.mulf %[[GG]], %[[C2]]
// ADAM: %[[V:.*]] = arith.addf %[[VA]], %[[VB]]
// ADAM: %[[ROOT:.*]] = math.sqrt %[[V]]
// ADAM: %[[DEN:.*]] = arith.addf %[[ROOT]],
// ADAM: %[[Q:.*]] = arith.divf %[[M]], %[[DEN]]
// ADAM: %[[D:.*]] = arith.mulf {{.*}}, %[[Q]]
// ADAM: arith.subf {{.*}}, %[[D]]

// REDUCE: func.func private @nsk_reduce_d16_weighted(
// REDUCE: %[[G:.*]] = scf.for
// REDUCE: scf.yield
// REDUCE: vector.transfer_write %[[G]]
// REDUCE: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// REDUCE: %[[NORM:.*]] = vector.reduction <add>,
// REDUCE: %[[ONE:.*]] = vector.broadcast %[[NORM]] : f32 to vector<1xf32>
// REDUCE: vector.transfer_write %[[ONE]]

// APPLY: func.func private @nsk_apply_rowwise_adagrad_f32_d16_of64_e3e45798ee2308c3a(
// APPLY-DAG: %[[COLUMNS:.*]] = arith.constant 6.400000e+01 : f32
// APPLY: arith.divf {{.*}}, %[[COLUMNS]] : f32
// APPLY-NOT: scf.for
// APPLY: arith.subf
