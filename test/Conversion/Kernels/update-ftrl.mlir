// FTRL-Proximal with its penalties. The formula of docs/kernels.md, one rounding per operation.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=16 optimizer=ftrl eps=1 l1-penalty=0.5 l2-penalty=0.25" --canonicalize --cse | FileCheck %s

module {}

// CHECK: func.func private @nsk_update_ftrl_f32_d16_e3ff0000000000000_l3fe0000000000000_l3fd0000000000000(
// CHECK-SAME: %[[WEIGHTS:[^:]*]]: memref<1099511627776x16xf32>
// CHECK-SAME: %[[SUMS:[^:]*]]: memref<1099511627776x16xf32>
// CHECK-SAME: %[[LINEARS:[^:]*]]: memref<1099511627776x16xf32>
// CHECK-SAME: %[[LR:[^:]*]]: f32, %{{[^:]*}}: f32, %{{[^:]*}}: i32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{[^:]*}}: f32, %{{.*}}: i64, %{{[^:]*}}: i64)
// CHECK-DAG: %[[LOW:.*]] = arith.constant dense<-5.000000e-01> : vector<16xf32>
// CHECK-DAG: %[[HIGH:.*]] = arith.constant dense<5.000000e-01> : vector<16xf32>
// CHECK-DAG: %[[L2:.*]] = arith.constant dense<2.500000e-01> : vector<16xf32>
// CHECK-DAG: %[[EPS:.*]] = arith.constant dense<1.000000e+00> : vector<16xf32>
// CHECK: %[[G:.*]] = scf.for
// CHECK: scf.yield
// CHECK: %[[W:.*]] = vector.transfer_read %[[WEIGHTS]]
// CHECK: %[[N:.*]] = vector.transfer_read %[[SUMS]]
// CHECK: %[[Z:.*]] = vector.transfer_read %[[LINEARS]]

// n' = n + g * g; z' = (z + g) - ((sqrt(n') - sqrt(n)) / lr) * w
// CHECK: %[[GG:.*]] = arith.mulf %[[G]], %[[G]]
// CHECK: %[[N1:.*]] = arith.addf %[[N]], %[[GG]]
// CHECK: %[[ROOT:.*]] = math.sqrt %[[N1]]
// CHECK: %[[OLD:.*]] = math.sqrt %[[N]]
// CHECK: %[[MORE:.*]] = arith.subf %[[ROOT]], %[[OLD]]
// CHECK: %[[RATE:.*]] = vector.broadcast %[[LR]]
// CHECK: %[[SIGMA:.*]] = arith.divf %[[MORE]], %[[RATE]]
// CHECK: %[[ZG:.*]] = arith.addf %[[Z]], %[[G]]
// CHECK: %[[MOVED:.*]] = arith.mulf %[[SIGMA]], %[[W]]
// CHECK: %[[Z1:.*]] = arith.subf %[[ZG]], %[[MOVED]]

// (clamp(z', l1) - z') / ((sqrt(n') + eps) / lr + l2)
// CHECK: %[[BELOW:.*]] = arith.minimumf %[[Z1]], %[[HIGH]]
// CHECK: %[[INSIDE:.*]] = arith.maximumf %[[BELOW]], %[[LOW]]
// CHECK: %[[BETA:.*]] = arith.addf %[[ROOT]], %[[EPS]]
// CHECK: %[[OVER:.*]] = arith.divf %[[BETA]], %[[RATE]]
// CHECK: %[[BOTTOM:.*]] = arith.addf %[[OVER]], %[[L2]]
// CHECK: %[[TOP:.*]] = arith.subf %[[INSIDE]], %[[Z1]]
// CHECK: %[[NEW:.*]] = arith.divf %[[TOP]], %[[BOTTOM]]
// CHECK: vector.transfer_write %[[N1]], %[[SUMS]]
// CHECK: vector.transfer_write %[[Z1]], %[[LINEARS]]
// CHECK: vector.transfer_write %[[NEW]], %[[WEIGHTS]]
