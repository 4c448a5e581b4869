// Embeddings of torch-mlir in generic form, whose dialect is not registered, become lookups.
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true --split-input-file | FileCheck %s

// Arguments and results that only lookups and returns see become builtin tensors. -1 is no padding_idx.
// CHECK:       neuroshard.table private @user : 100 x 4 x f32
// CHECK-LABEL: func.func @embedding(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?x3xi64>) -> tensor<?x3x4xf32>
// CHECK:         neuroshard.lookup unpooled @user[%{{.*}}, "ids1"] : !ids -> tensor<?x4xf32>
// CHECK-NOT:     torch
func.func @embedding(%user: !torch.vtensor<[100,4],f32> loc("user"), %ids: !torch.vtensor<[?,3],si64>) -> !torch.vtensor<[?,3,4],f32> {
  %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %rows = "torch.aten.embedding"(%user, %ids, %minus, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?,3],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,3,4],f32>
  return %rows : !torch.vtensor<[?,3,4],f32>
}

// -----

// Without include_last_offset the number of ids ends the last bag. The padding row -2 is the last but one.
// CHECK-LABEL: func.func @bags(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?xi64>, %[[OFFSETS:.*]]: tensor<?xi64>) -> tensor<?x4xf32>
// CHECK:         tensor.insert_slice %[[OFFSETS]] into
// CHECK:         %[[ALL:.*]] = tensor.insert_slice
// CHECK:         neuroshard.pack ids(%[[IDS]] : tensor<?xi64>) offsets(%[[ALL]] : tensor<?xi64>)
// CHECK:         neuroshard.lookup mean @table0[%{{.*}}, "ids1"] padding_idx 98
func.func @bags(%user: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>, %offsets: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
  %minus = "torch.constant.int"() <{value = -2 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  %0:4 = "torch.aten.embedding_bag.padding_idx"(%user, %ids, %offsets, %no, %one, %no, %none, %no, %minus) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.bool, !torch.int, !torch.bool, !torch.none, !torch.bool, !torch.int) -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>)
  return %0#0 : !torch.vtensor<[?,4],f32>
}

// -----

// What is around a lookup stays torch's, and is connected by torch-mlir's own conversions. The sum of rows
// with a padding_idx stays: a lookup's sum would leave the padding row out.
// CHECK-LABEL: func.func @around(
// CHECK-SAME:    %[[IDS:.*]]: !torch.vtensor<[8,3],si64>) -> !torch.vtensor<[8,4],f32>
// CHECK:         %[[MORE:.*]] = "torch.aten.add.Scalar"(%[[IDS]]
// CHECK:         "torch_c.to_builtin_tensor"(%[[MORE]]) : (!torch.vtensor<[8,3],si64>) -> tensor<8x3xi64>
// CHECK:         neuroshard.lookup unpooled @table0[%{{.*}}, "ids"] padding_idx 1
// CHECK:         %[[ROWS:.*]] = "torch_c.from_builtin_tensor"(%{{.*}}) : (tensor<8x3x4xf32>) -> !torch.vtensor<[8,3,4],f32>
// CHECK:         %[[SUMS:.*]] = "torch.aten.sum.dim_IntList"(%[[ROWS]]
// CHECK:         return %[[SUMS]]
func.func @around(%user: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[8,3],si64>) -> !torch.vtensor<[8,4],f32> {
  %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %none = "torch.constant.none"() : () -> !torch.none
  %more = "torch.aten.add.Scalar"(%ids, %one, %one) : (!torch.vtensor<[8,3],si64>, !torch.int, !torch.int) -> !torch.vtensor<[8,3],si64>
  %rows = "torch.aten.embedding"(%user, %more, %one, %no, %no) : (!torch.vtensor<[100,4],f32>, !torch.vtensor<[8,3],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[8,3,4],f32>
  %dims = "torch.prim.ListConstruct"(%one) : (!torch.int) -> !torch.list<int>
  %sums = "torch.aten.sum.dim_IntList"(%rows, %dims, %no, %none) : (!torch.vtensor<[8,3,4],f32>, !torch.list<int>, !torch.bool, !torch.none) -> !torch.vtensor<[8,4],f32>
  return %sums : !torch.vtensor<[8,4],f32>
}

// -----

// Torch counts negative ids of an index from the end, those of index_select are errors.
// CHECK-LABEL: func.func @indexed(
// CHECK-SAME:    %[[IDS:.*]]: tensor<?xi64>) -> (tensor<?x4xf32>, tensor<?x4xf32>)
// CHECK:         %[[PLAIN:.*]] = neuroshard.pack ids(%[[IDS]] : tensor<?xi64>)
// CHECK:         %[[WRAPPED:.*]] = linalg.generic {{.*}} ins(%[[IDS]] : tensor<?xi64>)
// CHECK:           arith.cmpi slt
// CHECK:           arith.constant 100 : i64
// CHECK:           arith.select
// CHECK:         %[[COUNTED:.*]] = neuroshard.pack ids(%[[WRAPPED]] : tensor<?xi64>)
// CHECK:         %[[INDEXED:.*]] = neuroshard.lookup unpooled @table0[%[[COUNTED]],
// CHECK:         %[[SELECTED:.*]] = neuroshard.lookup unpooled @table0[%[[PLAIN]],
// CHECK:         return %[[INDEXED]], %[[SELECTED]]
func.func @indexed(%user: !torch.vtensor<[100,4],f32>, %ids: !torch.vtensor<[?],si64>) -> (!torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4],f32>) {
  %zero = "torch.constant.int"() <{value = 0 : i64}> : () -> !torch.int
  %list = "torch.prim.ListConstruct"(%ids) : (!torch.vtensor<[?],si64>) -> !torch.list<vtensor>
  %0 = "torch.aten.index.Tensor_hacked_twin"(%user, %list) : (!torch.vtensor<[100,4],f32>, !torch.list<vtensor>) -> !torch.vtensor<[?,4],f32>
  %1 = "torch.aten.index_select"(%user, %zero, %ids) : (!torch.vtensor<[100,4],f32>, !torch.int, !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32>
  return %0, %1 : !torch.vtensor<[?,4],f32>, !torch.vtensor<[?,4],f32>
}
