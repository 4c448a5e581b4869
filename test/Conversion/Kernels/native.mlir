// What LLVM gets: bare pointers, 16-wide adds in the order of the ids, prefetches, no
// fused multiply-add, bf16 rounded by integer arithmetic, nothing left to convert.

// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=64 weighted=true" --neuroshard-native-pipeline | FileCheck %s
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update dim=64 element=bf16 optimizer=adam" --neuroshard-native-pipeline | FileCheck %s --check-prefix=BF16
// RUN: neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=64 weighted=true" --neuroshard-native-pipeline | mlir-translate --mlir-to-llvmir | llc -O3 -mtriple=x86_64 -mcpu=znver4 | FileCheck %s --check-prefix=ASM

module {}

// CHECK: llvm.func @nsk_lookup_sum_f32_d64_i64_weighted(%{{.*}}: !llvm.ptr {llvm.align = 16 : i64, llvm.noalias, llvm.readonly}, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: !llvm.ptr {{.*}}, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i64)
// CHECK-COUNT-4: "llvm.intr.prefetch"
// CHECK-COUNT-4: llvm.fmul {{.*}} : vector<16xf32>
// CHECK-COUNT-4: llvm.fadd {{.*}} : vector<16xf32>
// CHECK-NOT: fma
// CHECK-NOT: fmuladd
// CHECK-NOT: nsrt_invoke_

// BF16: llvm.func @nsk_update_adam_bf16_d64
// BF16: llvm.shl {{.*}} : vector<16xi32>
// BF16-NOT: llvm.fptrunc
// BF16: llvm.lshr {{.*}} : vector<16xi32>

// ASM: nsk_lookup_sum_f32_d64_i64_weighted:
// ASM-NOT: vfmadd
// ASM-COUNT-4: prefetcht1
// ASM-NOT: vfmadd
// ASM-COUNT-4: vmulps {{.*}}%zmm
// ASM-NOT: vfmadd
// ASM: retq
