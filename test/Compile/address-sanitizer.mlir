// Kernels and host functions of CPUs check their accesses to memory if they are asked to.

// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/a --training --emit-ir --address-sanitizer
// RUN: FileCheck %s --input-file=%t/a/ir/program0-native.ll

// CHECK-LABEL: define void @nsrt_invoke_embeddings_update(
// CHECK: call void @__asan_report_load
// CHECK-LABEL: define internal void @nsk_update_adagrad_f32_d8
// CHECK: call void @__asan_report_store
// CHECK-LABEL: define internal void @nsk_lookup_sum_f32_d8_i32(
// CHECK: call void @__asan_report_load
