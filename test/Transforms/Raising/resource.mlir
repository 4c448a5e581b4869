// Tables that are resources, as torch-mlir imports parameters: named by the resource, their values in the file
// as f32. Values that the module does not have cannot be kept.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups=weights-file=%t/rows.safetensors --remarks-filter=neuroshard-raise-lookups --remark-format=emitRemark 2>&1 -o %t/raised.mlir | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s --input-file=%t/raised.mlir
// RUN: %python -c "import struct; b = open('%t/rows.safetensors', 'rb').read(); print(struct.unpack('<4f', b[-16:]))" | FileCheck %s --check-prefix=ROWS

// CHECK:     neuroshard.table private @emb.weight : 2 x 2 x f16
// CHECK:     neuroshard.lookup unpooled @emb.weight
// CHECK:     tensor.gather
// ROWS:      (1.0, 2.0, -0.5, 0.0)
// REMARK-DAG: remark: [Missed] NotRaised {{.*}} the values of the table are not in this file
// REMARK-DAG: remark: [Passed] Table {{.*}}table 'emb.weight' was a constant
// REMARK-DAG: remark: [Passed] Raised {{.*}}'unpooled' lookup of table 'emb.weight' for 'torch.aten.embedding'

func.func @forward(%ids: !torch.vtensor<[?],si64>, %others: tensor<?x1xi64>) -> (!torch.vtensor<[?,2],f16>, tensor<?x2xf16>) {
  %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
  %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
  %t = "torch.vtensor.literal"() <{value = dense_resource<emb.weight> : tensor<2x2xf16>}> : () -> !torch.vtensor<[2,2],f16>
  %rows = "torch.aten.embedding"(%t, %ids, %minus, %no, %no) : (!torch.vtensor<[2,2],f16>, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,2],f16>
  %missing = arith.constant dense_resource<missing> : tensor<2x2xf16>
  %more = tensor.gather %missing[%others] gather_dims([0]) : (tensor<2x2xf16>, tensor<?x1xi64>) -> tensor<?x2xf16>
  return %rows, %more : !torch.vtensor<[?,2],f16>, tensor<?x2xf16>
}

{-#
  dialect_resources: {
    builtin: {
      emb.weight: "0x02000000003C004000B80000"
    }
  }
#-}
