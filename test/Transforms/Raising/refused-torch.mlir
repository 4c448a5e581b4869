// Embeddings of torch-mlir that no lookup does: the reason of each.
// RUN: neuroshard-opt-raw %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

func.func @scaled(%t: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %yes = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
  // expected-error @+1 {{scale_grad_by_freq must be the constant false: lookups do not scale gradients}}
  %rows = "torch.aten.embedding"(%t, %ids, %minus, %yes, %yes) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,4],f32>
  return %rows : !torch.vtensor<[?,4],f32>
}

// -----

func.func @unknown(%t: !torch.vtensor, %ids: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  // expected-error @+1 {{table, ids and result must be a '!torch.vtensor' with known rank and element type; got: !torch.vtensor,}}
  %rows = "torch.aten.embedding"(%t, %ids, %minus, %no, %no) : (!torch.vtensor, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,4],f32>
  return %rows : !torch.vtensor<[?,4],f32>
}

// -----

func.func @maximum(%t: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>, %offsets: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %two = "torch.constant.int"() <{value = 2 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error @+1 {{its mode must be the constant 0 (sum) or 1 (mean): lookups of sharded tables have no maximum}}
  %0:4 = "torch.aten.embedding_bag"(%t, %ids, %offsets, %no, %two, %no, %none, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.bool, !torch.int, !torch.bool, !torch.none, !torch.bool) -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>)
  return %0#0 : !torch.vtensor<[?,4],f32>
}

// -----

func.func @sizes_used(%t: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>, %offsets: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?],si64> {
  %zero = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error @+1 {{its result 2 is used; a lookup has the bags' rows alone}}
  %0:4 = "torch.aten.embedding_bag"(%t, %ids, %offsets, %no, %zero, %no, %none, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.bool, !torch.int, !torch.bool, !torch.none, !torch.bool) -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>)
  return %0#2 : !torch.vtensor<[?],si64>
}

// -----

func.func @padding(%t: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %hundred = "torch.constant.int"() <{value = 100 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  // expected-error @+1 {{padding_idx must be a row of the table, got: 100}}
  %rows = "torch.aten.embedding"(%t, %ids, %hundred, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,4],f32>
  return %rows : !torch.vtensor<[?,4],f32>
}

// -----

func.func @no_operands() {
  // expected-error @+1 {{it must have the operands weight, indices, padding_idx, scale_grad_by_freq and sparse}}
  %rows = "torch.aten.embedding"() : () -> !torch.vtensor<[?,4],f32>
  return
}

// -----

// Ops of dialects that are not registered may be anything.
func.func @malformed(%t: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[8,3],si64>, %b: tensor<100x4xf32>, %i: tensor<8x3xi64>) {
  %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  // expected-error @+1 {{the result must have the dimensions of the ids and one more}}
  %0 = "torch.aten.embedding"(%t, %ids, %minus, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[8,3],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[8,5,4],f32>
  // expected-error @+1 {{the result must have the columns of the table, got: !torch.vtensor<[8,3,5],f32>}}
  %1 = "torch.aten.embedding"(%t, %ids, %minus, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[8,3],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[8,3,5],f32>
  %cast = "torch_c.to_builtin_tensor"() : () -> tensor<100x4xf32>
  // expected-error @+1 {{is not raised: the table must be an argument of a function, a constant or a global; this one is computed by 'torch_c.to_builtin_tensor'}}
  %2 = "stablehlo.gather"(%cast, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x3xi64>) -> tensor<8x3x4xf32>
  // expected-error @+1 {{the result does not fit the table and the ids: tensor<8x2x4xf32>}}
  %3 = "stablehlo.gather"(%b, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>}> : (tensor<100x4xf32>, tensor<8x3xi64>) -> tensor<8x2x4xf32>
  // expected-error @+1 {{expected 'dimension_numbers' as #stablehlo.gather<...>}}
  %4 = "stablehlo.gather"(%b, %i) {slice_sizes = array<i64: 1, 4>} : (tensor<100x4xf32>, tensor<8x3xi64>) -> tensor<8x3x4xf32>
  %5 = "torch.vtensor.literal"() : () -> !torch.vtensor<[100,4],f32>
  // expected-error @+1 {{is not raised: the table is a constant without a value}}
  %6 = "torch.aten.embedding"(%5, %ids, %minus, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[8,3],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[8,3,4],f32>
  return
}
