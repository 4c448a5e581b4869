// Stochastic rounding of a bf16 weight: a hash of the seed, the gradient and the new weight is added
// below the bits that stay, and all bits below them are cleared. What is written then rounds exactly.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 element=bf16 optimizer=sgd stochastic-rounding" --canonicalize --cse | FileCheck %s
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 element=f16 optimizer=sgd stochastic-rounding" --canonicalize --cse | FileCheck %s --check-prefix=F16
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=sgd stochastic-rounding" 2>&1 | FileCheck %s --check-prefix=F32

module {}

// CHECK: func.func private @nsk_update_sgd_bf16_d16_stochastic(
// CHECK-SAME: %[[SEED:[^:]*]]: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// CHECK-DAG: %[[LOST:.*]] = arith.constant dense<65535> : vector<16xi32>
// CHECK-DAG: %[[STAY:.*]] = arith.constant dense<-65536> : vector<16xi32>
// CHECK: %[[G:.*]] = scf.for
// CHECK: scf.yield
// CHECK: %[[NEW:.*]] = arith.subf
// CHECK: %[[BITS:.*]] = arith.bitcast %[[NEW]] : vector<16xf32> to vector<16xi32>
// CHECK: %[[OFG:.*]] = arith.bitcast %[[G]]
// CHECK: %[[SPREAD:.*]] = vector.broadcast %[[SEED]]
// CHECK: arith.xori %[[OFG]], %[[SPREAD]]
// CHECK: arith.xori %[[BITS]],
// CHECK: %[[RANDOM:.*]] = arith.andi %{{.*}}, %[[LOST]]
// CHECK: %[[SOME:.*]] = arith.andi %[[RANDOM]],
// CHECK: %[[ADDED:.*]] = arith.addi %[[BITS]], %[[SOME]]
// CHECK: %[[CLEARED:.*]] = arith.andi %[[ADDED]], %[[STAY]]
// CHECK: %[[VALUE:.*]] = arith.bitcast %[[CLEARED]]
// CHECK: arith.truncf %[[VALUE]]

// Below 2^-14 the value is moved by up to half of 2^-24.
// F16: func.func private @nsk_update_sgd_f16_d16_stochastic(
// F16-DAG: arith.constant dense<8191> : vector<16xi32>
// F16-DAG: arith.constant dense<3.55271368E-15> : vector<16xf32>
// F16: arith.uitofp

// F32: weights of f32 are not rounded; it is for f16 and bf16
