// Forward kernels: one parallel loop over bags, rows as 16-wide vectors and powers of
// two for the rest, added in the order of the ids, the row 48 ids ahead prefetched
// without reading past the last id.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=38 id=i32" --canonicalize --cse | FileCheck %s
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=16 element=bf16 weighted=true" --canonicalize --cse | FileCheck %s --check-prefix=WEIGHTED
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=16 element=f16 pooled=false" --canonicalize --cse | FileCheck %s --check-prefix=ROWS
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=weight-gradient dim=40" --canonicalize --cse | FileCheck %s --check-prefix=DOT
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="dim=16" --neuroshard-emit-kernel="dim=16" | FileCheck %s --check-prefix=ONCE

module {}

// Rows of 38 f32 are stored with a stride of 40.
// CHECK: func.func private @nsk_lookup_sum_f32_d38_i32(
// CHECK-SAME: %[[W:.*]]: memref<1099511627776x40xf32> {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}
// CHECK-SAME: %[[IDS:[^:]*]]: memref<1099511627776xi32> {llvm.noalias, llvm.readonly}
// CHECK-SAME: %[[OFFSETS:[^:]*]]: memref<1099511627776xi64> {llvm.noalias, llvm.readonly}
// CHECK-SAME: memref<1099511627776xf32> {llvm.noalias, llvm.readonly}
// CHECK-SAME: %[[OUT:[^:]*]]: memref<1099511627776xf32> {llvm.noalias, llvm.writeonly}
// CHECK-SAME: %[[STRIDE:[^:]*]]: i64, %[[BEGIN:[^:]*]]: i64, %[[END:[^:]*]]: i64)
// CHECK-SAME: attributes {llvm.bareptr}
// CHECK-DAG: %[[C1:.*]] = arith.constant 1 : index
// CHECK-DAG: %[[AHEAD:.*]] = arith.constant 48 : index
// CHECK-DAG: %[[FIRST:.*]] = arith.index_cast %[[BEGIN]]
// CHECK-DAG: %[[LIMIT:.*]] = arith.index_cast %[[END]]
// CHECK: memref.load %[[OFFSETS]][%[[LIMIT]]]
// CHECK: %[[LAST:.*]] = arith.subi
// CHECK: scf.parallel (%[[BAG:.*]]) = (%[[FIRST]]) to (%[[LIMIT]])
// CHECK: %[[SUM:.*]]:4 = scf.for %[[J:.*]] = {{.*}} iter_args(%[[A0:.*]] = %{{.*}}, %[[A1:.*]] = %{{.*}}, %[[A2:.*]] = %{{.*}}, %[[A3:.*]] = %{{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<4xf32>, vector<2xf32>)
// CHECK: %[[FAR:.*]] = arith.addi %[[J]], %[[AHEAD]]
// CHECK: %[[NEXT:.*]] = arith.minsi %[[FAR]], %[[LAST]]
// CHECK: memref.load %[[IDS]][%[[NEXT]]]
// CHECK-COUNT-3: memref.prefetch %[[W]][{{.*}}], read, locality<2>, data
// CHECK: memref.load %[[IDS]][%[[J]]]
// CHECK-COUNT-2: vector.transfer_read %[[W]]{{.*}} {in_bounds = [true]} : memref<1099511627776x40xf32>, vector<16xf32>
// CHECK: vector.transfer_read {{.*}} vector<4xf32>
// CHECK: vector.transfer_read {{.*}} vector<2xf32>
// CHECK: arith.addf %[[A0]], {{.*}} : vector<16xf32>
// CHECK: arith.addf %[[A1]], {{.*}} : vector<16xf32>
// CHECK: arith.addf %[[A2]], {{.*}} : vector<4xf32>
// CHECK: arith.addf %[[A3]], {{.*}} : vector<2xf32>
// CHECK: scf.yield
// CHECK-COUNT-4: vector.transfer_write {{.*}}, %[[OUT]]
// CHECK: scf.reduce

// A term is one product, rounded, then added: no fused multiply-add.
// WEIGHTED: func.func private @nsk_lookup_sum_bf16_d16_i64_weighted(
// WEIGHTED: vector.transfer_read {{.*}} vector<16xbf16>
// WEIGHTED: %[[ROW:.*]] = arith.extf {{.*}} : vector<16xbf16> to vector<16xf32>
// WEIGHTED: %[[WEIGHT:.*]] = vector.broadcast {{.*}} : f32 to vector<16xf32>
// WEIGHTED: %[[TERM:.*]] = arith.mulf %[[WEIGHT]], %[[ROW]] : vector<16xf32>
// WEIGHTED: arith.addf {{.*}}, %[[TERM]] : vector<16xf32>
// WEIGHTED-NOT: fma

// Unpooled: no sum, no offsets; the last id bounds the prefetch.
// ROWS: func.func private @nsk_lookup_rows_f16_d16_i64(
// ROWS: %[[LAST:.*]] = arith.subi
// ROWS: scf.parallel (%[[J:.*]]) =
// ROWS: arith.minsi {{.*}}, %[[LAST]]
// ROWS: memref.prefetch
// ROWS: %[[HALF:.*]] = vector.transfer_read {{.*}} vector<16xf16>
// ROWS: %[[ROW:.*]] = arith.extf %[[HALF]]
// ROWS: vector.transfer_write %[[ROW]]
// ROWS-NOT: addf

// The dot product: chunks are added lane by lane, then reduced; then the rest.
// DOT: func.func private @nsk_weight_gradient_f32_d40_i64(
// DOT: scf.parallel
// DOT: %[[P0:.*]] = arith.mulf {{.*}} : vector<16xf32>
// DOT: %[[P1:.*]] = arith.mulf {{.*}} : vector<16xf32>
// DOT: %[[P2:.*]] = arith.mulf {{.*}} : vector<8xf32>
// DOT: %[[L0:.*]] = arith.addf %[[P0]], %{{.*}} : vector<16xf32>
// DOT: %[[L1:.*]] = arith.addf %[[L0]], %[[P1]] : vector<16xf32>
// DOT: %[[R0:.*]] = vector.reduction <add>, %[[L1]] fastmath<reassoc> : vector<16xf32> into f32
// DOT: %[[R1:.*]] = vector.reduction <add>, %[[P2]] fastmath<reassoc> : vector<8xf32> into f32
// DOT: arith.addf %[[R0]], %[[R1]] : f32
// DOT: vector.transfer_write {{.*}} : vector<1xf32>

// ONCE-COUNT-1: func.func private @nsk_lookup_sum_f32_d16_i64
// ONCE-NOT: func.func
