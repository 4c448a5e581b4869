// With both plugins the distribution's mlir-opt runs single passes and pipelines on every way
// from the logical level to LLVM IR, and gives what neuroshard-opt gives.

// DEFINE: %{plugin} = %neuroshard_lib/libneuroshard_plugin.so
// DEFINE: %{opt} = mlir-opt --load-dialect-plugin=%{plugin} --load-pass-plugin=%{plugin}
// DEFINE: %{plan} = topology=2xH200 cost-model=roofline seed=3

// RUN: %{opt} %s --pass-pipeline='builtin.module(neuroshard-plan{%{plan}},neuroshard-verify-planned,neuroshard-outline)' | FileCheck %s
// CHECK:       neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
// CHECK:       neuroshard.plan @plan on @cluster
// CHECK:         neuroshard.shard "user_0" of @user
// CHECK-LABEL: func.func @forward
// CHECK:         call @embeddings_start
// CHECK:         call @embeddings_wait

// The shipped models are found from the plugin: no class of GPU has any, CPUs have.
// RUN: %{opt} %s --pass-pipeline='builtin.module(neuroshard-plan{topology=2xCPU})' | FileCheck %s --check-prefix=SHIPPED
// SHIPPED: cost_model = "cpu_compute

// RUN: neuroshard-opt-raw %s --neuroshard-to-partitioned='%{plan} training=true' -o %t.expected
// RUN: %{opt} %s --pass-pipeline='builtin.module(neuroshard-to-partitioned{%{plan} training=true})' -o %t.partitioned
// RUN: diff %t.expected %t.partitioned

// RUN: neuroshard-opt-raw %t.expected --neuroshard-to-native=program=program0 -o %t.expected_native
// RUN: %{opt} %t.partitioned --pass-pipeline='builtin.module(neuroshard-to-native{program=program0})' -o %t.native
// RUN: diff %t.expected_native %t.native
// RUN: mlir-translate --mlir-to-llvmir %t.native | FileCheck %s --check-prefix=LLVM
// LLVM-DAG: define {{.*}} @embeddings_start
// LLVM-DAG: declare {{.*}} @nsrt_

// RUN: %{opt} %s --pass-pipeline='builtin.module(neuroshard-reference{training=true},neuroshard-native-pipeline)' -o %t.reference
// RUN: mlir-translate --mlir-to-llvmir %t.reference | FileCheck %s --check-prefix=REFERENCE
// REFERENCE: define {{.*}} @embeddings_update

// A module without our ops needs the pass plugin alone: the passes bring the dialect.
// RUN: echo 'shard.grid @mesh(shape = 2x8)' | mlir-opt --load-pass-plugin=%{plugin} --pass-pipeline='builtin.module(neuroshard-topology-from-grid{device-class=H200})' | FileCheck %s --check-prefix=ALONE
// ALONE: neuroshard.topology @cluster devices [#neuroshard.devices<8 x "H200">, #neuroshard.devices<8 x "H200", host = 1>]

// Errors are those of neuroshard-opt.
// RUN: not %{opt} %s --pass-pipeline='builtin.module(neuroshard-plan{topology=1xCPU@40MiB})' 2>%t.error
// RUN: not neuroshard-opt-raw %s --neuroshard-plan=topology=1xCPU@40MiB 2>%t.expected_error
// RUN: diff %t.expected_error %t.error
// RUN: FileCheck %s --check-prefix=ERROR --input-file=%t.error
// ERROR: error: no plan: device memory: the 2 tables need

!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @user : 1000000 x 64 x f32
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 1000 x 16 x f32
    {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x16xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    %i = neuroshard.lookup mean @item[%ids, "item"] : !ids -> tensor<?x16xf32>
    return %u, %i : tensor<?x64xf32>, tensor<?x16xf32>
  }
}
