// Optimizers with a first moment: momentum, AdamW with decoupled weight decay, and the second
// phase of partial rowwise Adam. The formulas of docs/kernels.md, one rounding per operation.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=momentum" --canonicalize --cse | FileCheck %s --check-prefix=MOMENTUM
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=adamw weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=ADAMW
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=partial_rowwise_adam table-dim=64 weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=PARTIAL
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 optimizer=partial_rowwise_adam table-dim=64 weight-decay=0.25 weight-decay-mode=l2" --canonicalize --cse | FileCheck %s --check-prefix=L2
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=adamw" 2>&1 | FileCheck %s --check-prefix=ELEMENTWISE

module {}

// m = mu m + g; w - lr * m
// MOMENTUM: func.func private @nsk_update_momentum_f32_d16_b3feccccccccccccd(
// MOMENTUM-SAME: %[[WEIGHTS:[^:]*]]: memref<1099511627776x16xf32>
// MOMENTUM-SAME: %[[BUFFERS:[^:]*]]: memref<1099511627776x16xf32>
// MOMENTUM-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// MOMENTUM-DAG: %[[MU:.*]] = arith.constant dense<0.899999976> : vector<16xf32>
// MOMENTUM: %[[G:.*]] = scf.for
// MOMENTUM: scf.yield
// MOMENTUM: %[[W:.*]] = vector.transfer_read %[[WEIGHTS]]
// MOMENTUM: %[[OLD:.*]] = vector.transfer_read %[[BUFFERS]]
// MOMENTUM: %[[KEPT:.*]] = arith.mulf %[[OLD]], %[[MU]]
// MOMENTUM: %[[M:.*]] = arith.addf %[[KEPT]], %[[G]]
// MOMENTUM: %[[STEP:.*]] = vector.broadcast %[[LR]]
// MOMENTUM: %[[D:.*]] = arith.mulf %[[STEP]], %[[M]]
// MOMENTUM: %[[NEW:.*]] = arith.subf %[[W]], %[[D]]
// MOMENTUM: vector.transfer_write %[[M]], %[[BUFFERS]]
// MOMENTUM: vector.transfer_write %[[NEW]], %[[WEIGHTS]]

// kept * w - step * (m / (sqrt(v) + eps)); the amount of decay is an argument.
// ADAMW: func.func private @nsk_update_adamw_f32_d16_b3feccccccccccccd_b3feff7ced916872b_e3e45798ee2308c3a_decoupled(
// ADAMW-SAME: %[[SIZE:[^:]*]]: f32, %[[KEPT:[^:]*]]: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// ADAMW: scf.yield
// ADAMW: %[[W:.*]] = vector.transfer_read
// ADAMW: %[[SHARE:.*]] = vector.broadcast %[[KEPT]]
// ADAMW: %[[REST:.*]] = arith.mulf %[[SHARE]], %[[W]]
// ADAMW: %[[Q:.*]] = arith.divf
// ADAMW: %[[STEP:.*]] = vector.broadcast %[[SIZE]]
// ADAMW: %[[D:.*]] = arith.mulf %[[STEP]], %[[Q]]
// ADAMW: arith.subf %[[REST]], %[[D]]

// v = b2 v + (1 - b2) norm / 64; kept * w - (step / (sqrt(v) + eps)) * m
// PARTIAL: func.func private @nsk_apply_partial_rowwise_adam_f32_d16_of64_b3feccccccccccccd_b3feff7ced916872b_e3e45798ee2308c3a_decoupled(
// PARTIAL-SAME: memref<1099511627776x16xf32>
// PARTIAL-SAME: %[[FIRST:[^:]*]]: memref<1099511627776x16xf32>
// PARTIAL-SAME: %[[SECOND:[^:]*]]: memref<1099511627776xf32>
// PARTIAL-SAME: %[[SIZE:[^:]*]]: f32, %[[KEPT:[^:]*]]: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// PARTIAL-DAG: %[[COLUMNS:.*]] = arith.constant 6.400000e+01 : f32
// PARTIAL-DAG: %[[B2:.*]] = arith.constant 9.990000e-01 : f32
// PARTIAL-DAG: %[[C2:.*]] = arith.constant 1.000000e-03 : f32
// PARTIAL: %[[OLD:.*]] = memref.load %[[SECOND]]
// PARTIAL: %[[MEAN:.*]] = arith.divf %{{.*}}, %[[COLUMNS]]
// PARTIAL: %[[VA:.*]] = arith.mulf %[[OLD]], %[[B2]]
// PARTIAL: %[[VB:.*]] = arith.mulf %[[MEAN]], %[[C2]]
// PARTIAL: %[[V:.*]] = arith.addf %[[VA]], %[[VB]]
// PARTIAL: %[[ROOT:.*]] = math.sqrt %[[V]]
// PARTIAL: %[[DEN:.*]] = arith.addf %[[ROOT]]
// PARTIAL: %[[FACTOR:.*]] = arith.divf %[[SIZE]], %[[DEN]]
// PARTIAL: vector.transfer_read %[[FIRST]]
// PARTIAL: %[[REST:.*]] = arith.mulf
// PARTIAL: %[[M:.*]] = arith.addf
// PARTIAL: %[[SPREAD:.*]] = vector.broadcast %[[FACTOR]]
// PARTIAL: %[[D:.*]] = arith.mulf %[[SPREAD]], %[[M]]
// PARTIAL: arith.subf %[[REST]], %[[D]]
// PARTIAL: vector.transfer_write %[[M]], %[[FIRST]]

// g = sum + decay w, and the sum of g * g.
// L2: func.func private @nsk_reduce_partial_rowwise_adam_f32_d16_of64_{{[^(]*}}_d3fd0000000000000(
// L2-SAME: %[[WEIGHTS:[^:]*]]: memref<1099511627776x16xf32>
// L2-DAG: %[[DECAY:.*]] = arith.constant dense<2.500000e-01> : vector<16xf32>
// L2: %[[SUM:.*]] = scf.for
// L2: scf.yield
// L2: %[[W:.*]] = vector.transfer_read %[[WEIGHTS]]
// L2: %[[DW:.*]] = arith.mulf %[[W]], %[[DECAY]]
// L2: %[[G:.*]] = arith.addf %[[SUM]], %[[DW]]
// L2-DAG: vector.transfer_write %[[G]]
// L2-DAG: arith.mulf %[[G]], %[[G]]

// ELEMENTWISE: a two-phase update needs an optimizer with norms of rows, got: adamw
