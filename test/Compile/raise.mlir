// --raise makes lookups first, says what looked like one and stays, and compiles what it has made.

// RUN: rm -rf %t && split-file %s %t

// RUN: neuroshard-compile %t/two.mlir -o %t/a --topology 2xCPU --raise --jagged-arguments --reference --emit-ir 2>&1 | FileCheck %s --check-prefix=MISSED
// MISSED: two.mlir:{{[0-9]+}}:{{[0-9]+}}: remark: [Missed] NotRaised | Category:neuroshard-raise-lookups | Remark="'linalg.generic' looks like a lookup: {{.*}}"
// MISSED-NOT: remark
// RUN: ls %t/a/ir | FileCheck %s --check-prefix=LEVELS
// LEVELS: 0-input.mlir
// LEVELS-NEXT: 1-logical.mlir
// RUN: FileCheck %s --check-prefix=LOGICAL --input-file=%t/a/ir/1-logical.mlir
// LOGICAL: neuroshard.table private @user : 10 x 4 x f32
// LOGICAL: neuroshard.lookup unpooled @user
// LOGICAL: tensor.extract %
// RUN: neuroshard-compile %t/one.mlir -o %t/a --topology 2xCPU --raise --jagged-arguments --reference
// RUN: neuroshard-run %t/a --batch 9 --pooling 1 --steps 1

// Ids that stay tensors are packed in the function; so does its reference.
// RUN: neuroshard-compile %t/one.mlir -o %t/a --topology 2xCPU --raise --reference
// RUN: not neuroshard-run %t/a --batch 9 2>&1 | FileCheck %s --check-prefix=PACKED
// PACKED: argument {{[0-9]+}} of 'forward' is a tensor<{{.*}}xi64>: values can be made up for f32 tensors of which the first size alone is unknown

// RUN: not neuroshard-compile %t/two.mlir -o %t/b --topology 2xCPU --raise --strict 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: error: 'linalg.generic' op looks like a lookup and is not raised
// RUN: not neuroshard-compile %t/constant.mlir -o %t/b --topology 2xCPU --raise 2>&1 | FileCheck %s --check-prefix=CONSTANT
// CONSTANT: Remark="'tensor.gather' looks like a lookup: the values of the table would be lost
// CONSTANT: error: expected a module with at least one 'neuroshard.table'; nothing in it was raised to a lookup
// RUN: neuroshard-compile %t/constant.mlir -o %t/b --topology 2xCPU --raise --weights-file %t/rows.safetensors
// RUN: FileCheck %s --check-prefix=ROWS --input-file=%t/rows.safetensors
// ROWS: "user"
// A compilation that fails keeps both the artifact and the weights of an earlier one.
// RUN: cp %t/rows.safetensors %t/earlier.safetensors && cp %t/b/manifest.json %t/earlier.json
// RUN: not neuroshard-compile %t/other.mlir -o %t/b --topology 2xCPU@4096B --raise --weights-file %t/rows.safetensors 2>&1 | FileCheck %s --check-prefix=FULL
// FULL: error: {{.*}}memory
// RUN: cmp %t/rows.safetensors %t/earlier.safetensors && cmp %t/b/manifest.json %t/earlier.json
// RUN: neuroshard-compile %t/other.mlir -o %t/b --topology 2xCPU --raise --weights-file %t/rows.safetensors
// RUN: not cmp %t/rows.safetensors %t/earlier.safetensors
// RUN: ls %t/b | FileCheck %s --check-prefix=FILES
// FILES-NOT: safetensors

// Neither takes the place of what is no weights file.
// RUN: cp %t/other.mlir %t/kept.mlir
// RUN: not neuroshard-compile %t/other.mlir -o %t/c --topology 2xCPU --raise --weights-file %t/other.mlir 2>&1 | FileCheck %s --check-prefix=OWN
// OWN: error: --weights-file: '{{.*}}other.mlir' is there and is no safetensors file; name another file to write
// RUN: cmp %t/other.mlir %t/kept.mlir
// RUN: not neuroshard-compile %t/other.mlir -o %t/c --topology 2xCPU --raise --weights-file %t/none/rows.safetensors 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: --weights-file: {{.*}}none/rows.safetensors: cannot write: there is no folder

// RUN: not neuroshard-compile %t/torch.mlir -o %t/b --topology 2xCPU --raise 2>&1 | FileCheck %s --check-prefix=TORCH
// TORCH: torch.mlir:{{[0-9]+}}:{{[0-9]+}}: error: 'torch.aten.relu' is not an op that can be compiled: only lookups are raised; lower the rest of its dialect first
// RUN: not neuroshard-compile %t/one.mlir -o %t/b --topology 2xCPU 2>&1 | FileCheck %s --check-prefix=HINT
// HINT: error: expected a module with at least one 'neuroshard.table'; with --raise tables and lookups are made of what other dialects spell out
// RUN: not neuroshard-compile %t/one.mlir -o %t/b --topology 2xCPU --strict 2>&1 | FileCheck %s --check-prefix=ALONE
// ALONE: --strict has an effect only with --raise

//--- one.mlir
module attributes {neuroshard.batch = 9 : i64} {
  func.func @forward(%user: tensor<10x4xf32> loc("user"), %ids: tensor<?x1xi64> loc("clicks")) -> tensor<?x4xf32> {
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<10x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
    return %rows : tensor<?x4xf32>
  }
}
//--- two.mlir
module attributes {neuroshard.batch = 9 : i64} {
  func.func @forward(%user: tensor<10x4xf32> loc("user"), %ids: tensor<?x1xi64> loc("clicks"), %wide: tensor<4x10xf32>, %columns: tensor<?x1xi64>) -> tensor<?x4xf32> {
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<10x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
    %c0 = arith.constant 0 : index
    %n = tensor.dim %columns, %c0 : tensor<?x1xi64>
    %room = tensor.empty(%n) : tensor<?x4xf32>
    %other = linalg.generic {indexing_maps = [affine_map<(b, d) -> (b, 0)>, affine_map<(b, d) -> (b, d)>], iterator_types = ["parallel", "parallel"]} ins(%columns : tensor<?x1xi64>) outs(%room : tensor<?x4xf32>) {
    ^bb0(%id: i64, %out: f32):
      %i = arith.index_cast %id : i64 to index
      %d = linalg.index 1 : index
      %x = tensor.extract %wide[%d, %i] : tensor<4x10xf32>
      linalg.yield %x : f32
    } -> tensor<?x4xf32>
    %sum = arith.addf %rows, %other : tensor<?x4xf32>
    return %sum : tensor<?x4xf32>
  }
}
//--- constant.mlir
module attributes {neuroshard.batch = 9 : i64} {
  func.func @forward(%ids: tensor<?x1xi64> loc("clicks")) -> tensor<?x4xf32> {
    %user = arith.constant dense<0.5> : tensor<10x4xf32> loc("user")
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<10x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
    return %rows : tensor<?x4xf32>
  }
}
//--- other.mlir
module attributes {neuroshard.batch = 9 : i64} {
  func.func @forward(%ids: tensor<?x1xi64> loc("clicks")) -> tensor<?x4xf32> {
    %user = arith.constant dense<0.25> : tensor<1000x4xf32> loc("user")
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<1000x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
    return %rows : tensor<?x4xf32>
  }
}
//--- torch.mlir
"builtin.module"() ({
  "func.func"() <{function_type = (!torch.vtensor<[500,8],f32>, !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,8],f32>, sym_name = "forward"}> ({
  ^bb0(%user: !torch.vtensor<[500,8],f32> loc("user"), %ids: !torch.vtensor<[?],si64> loc("clicks")):
    %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %minus = "torch.constant.int"() <{value = -1 : i64}> : () -> !torch.int
    %0 = "torch.aten.embedding"(%user, %ids, %minus, %no, %no) : (!torch.vtensor<[500,8],f32>, !torch.vtensor<[?],si64>, !torch.int, !torch.bool, !torch.bool) -> !torch.vtensor<[?,8],f32>
    %1 = "torch.aten.relu"(%0) : (!torch.vtensor<[?,8],f32>) -> !torch.vtensor<[?,8],f32>
    "func.return"(%1) : (!torch.vtensor<[?,8],f32>) -> ()
  }) : () -> ()
}) : () -> ()
