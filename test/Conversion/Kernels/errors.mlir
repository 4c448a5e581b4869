// Kernels that cannot be are refused with one error that says what was found.

// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="dim=0" 2>&1 | FileCheck %s --check-prefix=DIM
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="pooled=false weighted=true" 2>&1 | FileCheck %s --check-prefix=UNPOOLED
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=apply optimizer=adam" 2>&1 | FileCheck %s --check-prefix=PHASES
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update eps=nan" 2>&1 | FileCheck %s --check-prefix=EPS
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=update table-dim=8" 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not neuroshard-test-opt %s --neuroshard-emit-kernel="kind=lookup dim=7" 2>&1 | FileCheck %s --check-prefix=TAKEN

func.func private @nsk_lookup_sum_f32_d7_i64()

// DIM: error: kernel dim must be at least 1, got: 0
// UNPOOLED: error: an unpooled lookup cannot be weighted
// PHASES: error: a two-phase update needs an optimizer with norms of rows, got: adam
// EPS: error: optimizer constants must be finite and not negative, got: nan
// TABLE: error: table dim must be at least the kernel dim 16, got: 8
// TAKEN: error: symbol 'nsk_lookup_sum_f32_d7_i64' is reserved for a kernel
