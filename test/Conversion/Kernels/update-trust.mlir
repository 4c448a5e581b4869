// Optimizers with trust ratios. The first phase of LAMB steps the moments, keeps the direction of the
// step and sums the squares of it and of the weights; the second one needs both sums alone. LARS keeps
// its gradient with decay, and partial row-wise LAMB its first moment. docs/kernels.md has the formulas.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 optimizer=lamb eps=0.5 weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=REDUCE
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=lamb eps=0.5 weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=APPLY
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply dim=16 optimizer=lars_sgd eta=0.5 weight-decay=0.25" --canonicalize --cse | FileCheck %s --check-prefix=LARS
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=reduce dim=16 optimizer=partial_rowwise_lamb" --canonicalize --cse | FileCheck %s --check-prefix=PARTIAL
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=lamb eta=0.5" 2>&1 | FileCheck %s --check-prefix=ETA

module {}

// r = (first * m') / (second * sqrt(v') + eps) + decay * w; |r|^2, |w|^2
// REDUCE: func.func private @nsk_reduce_lamb_f32_d16_b3feccccccccccccd_b3feff7ced916872b_e3fe0000000000000_d3fd0000000000000(
// REDUCE-SAME: %[[WEIGHTS:[^:]*]]: memref<1099511627776x16xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// REDUCE-SAME: %[[FIRSTS:[^:]*]]: memref<1099511627776x16xf32>
// REDUCE-SAME: %[[SECONDS:[^:]*]]: memref<1099511627776x16xf32>
// REDUCE-SAME: %[[C1:[^:]*]]: f32, %[[C2:[^:]*]]: f32, %[[REDUCED:[^:]*]]: memref<1099511627776x16xf32>
// REDUCE: vector.transfer_write %[[M:.*]], %[[FIRSTS]]
// REDUCE: vector.transfer_write %[[V:.*]], %[[SECONDS]]
// REDUCE: %[[ROOT:.*]] = math.sqrt %[[V]]
// REDUCE: vector.broadcast %[[C2]]
// REDUCE: arith.addf
// REDUCE: vector.broadcast %[[C1]]
// REDUCE: arith.divf
// REDUCE: %[[R:.*]] = arith.addf
// REDUCE: arith.mulf %[[R]], %[[R]]
// REDUCE: vector.transfer_write %[[R]], %[[REDUCED]]
// REDUCE-COUNT-2: vector.reduction <add>
// REDUCE-NOT: vector.reduction
// REDUCE-NOT: vector.transfer_write {{.*}}, %[[WEIGHTS]]

// w - lr * (|w| / |r|) * r; the ratio is 0 where |r| is.
// APPLY: func.func private @nsk_apply_lamb_f32_d16_b3feccccccccccccd_b3feff7ced916872b_e3fe0000000000000_d3fd0000000000000(
// APPLY-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i64, %{{[^:]*}}: i64)
// APPLY: %[[NORM:.*]] = math.sqrt
// APPLY: %[[OFR:.*]] = math.sqrt
// APPLY: %[[NONE:.*]] = arith.cmpf oeq, %[[OFR]],
// APPLY: %[[Q:.*]] = arith.divf %[[NORM]], %[[OFR]]
// APPLY: %[[RATIO:.*]] = arith.select %[[NONE]], %{{.*}}, %[[Q]]
// APPLY: arith.mulf %[[LR]], %[[RATIO]]
// APPLY: arith.subf

// m' = mu m + (lr * eta * |w| / (|g| + decay * |w|)) * g; w - m'
// LARS: func.func private @nsk_apply_lars_sgd_f32_d16_b3feccccccccccccd_t3fe0000000000000_d3fd0000000000000(
// LARS-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i32
// LARS: %[[NORM:.*]] = math.sqrt
// LARS: %[[OFG:.*]] = math.sqrt
// LARS: %[[DECAY:.*]] = arith.mulf %[[NORM]],
// LARS: %[[BOTTOM:.*]] = arith.addf %[[OFG]], %[[DECAY]]
// LARS: %[[SCALED:.*]] = arith.mulf %[[LR]],
// LARS: %[[TOP:.*]] = arith.mulf %[[SCALED]], %[[NORM]]
// LARS: arith.divf %[[TOP]], %[[BOTTOM]]
// LARS: %[[BUFFER:.*]] = arith.addf
// LARS: %[[NEW:.*]] = arith.subf %{{.*}}, %[[BUFFER]]

// |g|^2, |m'|^2, m' w, |w|^2
// PARTIAL: func.func private @nsk_reduce_partial_rowwise_lamb_f32_d16
// PARTIAL-COUNT-4: vector.reduction <add>
// PARTIAL-NOT: vector.reduction

// ETA: lamb has no eta
