// Sums and means that a lookup does not do stay behind their rows; remarks say why.
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups --split-input-file --remarks-filter=neuroshard-raise-lookups --remark-format=emitRemark -o %t 2>&1 | FileCheck %s --check-prefix=MISSED
// RUN: FileCheck %s --input-file=%t

// MISSED-DAG: remark: [Missed] NotPooled {{.*}}'linalg.reduce': its sum does not begin at zero
// MISSED-DAG: remark: [Missed] NotPooled {{.*}}'torch.aten.mean.dim': it is a mean over bags of unknown size, which is no number for an empty bag; the mean of a lookup is zero there
// MISSED-DAG: remark: [Missed] NotPooled {{.*}}'torch.aten.mul.Tensor': its weights have several unknown sizes, each of which may be 1 and then be repeated

// CHECK-LABEL: func.func @sum_from_one(
// CHECK:         neuroshard.lookup unpooled
// CHECK:         linalg.reduce
func.func @sum_from_one(%t: tensor<23x4xf32>, %ids: tensor<?x3x1xi64>, %begin: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %one = arith.constant 1.0 : f32
  %ones = linalg.fill ins(%one : f32) outs(%begin : tensor<?x4xf32>) -> tensor<?x4xf32>
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x3x1xi64>) -> tensor<?x3x4xf32>
  %s = linalg.reduce {arith.addf} ins(%rows : tensor<?x3x4xf32>) outs(%ones : tensor<?x4xf32>) dimensions = [1]
  return %s : tensor<?x4xf32>
}

// -----

// CHECK-LABEL: func.func @unknown_mean(
// CHECK:         neuroshard.lookup unpooled
// CHECK:         torch.aten.mean.dim
"func.func"() <{function_type = (!torch.vtensor<[23,4],f32>, !torch.vtensor<[?,?],si64>) -> (!torch.vtensor<[?,4],f32>), sym_name = "unknown_mean"}> ({
  ^bb0(%user: !torch.vtensor<[23,4],f32> loc("user"), %ids: !torch.vtensor<[?,?],si64> loc("ids")):
    %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %none = "torch.constant.none"() : () -> !torch.none
    %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
    %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
    %rows = "torch.aten.embedding"(%user, %ids, %minus, %no, %no) : (!torch.vtensor<[23,4],f32>, !torch.vtensor<[?,?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,?,4],f32>
    %dims = "torch.prim.ListConstruct"(%one) : (!torch.int) -> !torch.list<int>
    %pooled = "torch.aten.mean.dim"(%rows, %dims, %no, %none) : (!torch.vtensor<[?,?,4],f32>, !torch.list<int>, !torch.bool, !torch.none) -> !torch.vtensor<[?,4],f32>
    "func.return"(%pooled) : (!torch.vtensor<[?,4],f32>) -> ()
  }) : () -> ()

// -----

// CHECK-LABEL: func.func @repeated_weights(
// CHECK:         neuroshard.lookup unpooled
// CHECK:         torch.aten.mul.Tensor
// CHECK:         torch.aten.sum.dim_IntList
"func.func"() <{function_type = (!torch.vtensor<[23,4],f32>, !torch.vtensor<[?,?],si64>, !torch.vtensor<[?,?],f32>) -> (!torch.vtensor<[?,4],f32>), sym_name = "repeated_weights"}> ({
  ^bb0(%user: !torch.vtensor<[23,4],f32> loc("user"), %ids: !torch.vtensor<[?,?],si64> loc("ids"), %w: !torch.vtensor<[?,?],f32> loc("w")):
    %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %none = "torch.constant.none"() : () -> !torch.none
    %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
    %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
    %plain = "torch.aten.embedding"(%user, %ids, %minus, %no, %no) : (!torch.vtensor<[23,4],f32>, !torch.vtensor<[?,?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,?,4],f32>
    %column = "torch.aten.unsqueeze"(%w, %minus) : (!torch.vtensor<[?,?],f32>, !torch.int) -> !torch.vtensor<[?,?,1],f32>
    %rows = "torch.aten.mul.Tensor"(%plain, %column) : (!torch.vtensor<[?,?,4],f32>, !torch.vtensor<[?,?,1],f32>) -> !torch.vtensor<[?,?,4],f32>
    %dims = "torch.prim.ListConstruct"(%one) : (!torch.int) -> !torch.list<int>
    %pooled = "torch.aten.sum.dim_IntList"(%rows, %dims, %no, %none) : (!torch.vtensor<[?,?,4],f32>, !torch.list<int>, !torch.bool, !torch.none) -> !torch.vtensor<[?,4],f32>
    "func.return"(%pooled) : (!torch.vtensor<[?,4],f32>) -> ()
  }) : () -> ()
