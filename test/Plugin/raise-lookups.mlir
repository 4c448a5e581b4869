// With the pass plugin the distribution's mlir-opt raises modules of dialects that it does not know, in
// generic form, as neuroshard-opt does.
// DEFINE: %{plugin} = %neuroshard_lib/libneuroshard_plugin.so
// RUN: mlir-opt %s --allow-unregistered-dialect --load-dialect-plugin=%{plugin} --load-pass-plugin=%{plugin} --pass-pipeline='builtin.module(neuroshard-raise-lookups{strict=true})' -o %t.plugin
// RUN: neuroshard-opt-raw %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true -o %t.own
// RUN: diff %t.own %t.plugin
// RUN: FileCheck %s --input-file=%t.plugin

// CHECK: neuroshard.lookup unpooled @table0

func.func @forward(%t: tensor<100x4xf32>, %ids: tensor<?x3xi64>) -> tensor<?x3x4xf32> {
  %rows = "stablehlo.gather"(%t, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<?x3xi64>) -> tensor<?x3x4xf32>
  return %rows : tensor<?x3x4xf32>
}
