// From gathered rows of a constant to a program that runs: the values of the table are in the file, ids are
// a jagged argument.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-opt %s --neuroshard-raise-lookups="jagged-arguments=true weights-file=%t/rows.safetensors" -o %t/logical.mlir
// RUN: FileCheck %s --input-file=%t/logical.mlir
// RUN: FileCheck %s --check-prefix=ROWS --input-file=%t/rows.safetensors
// RUN: neuroshard-compile %t/logical.mlir -o %t/artifact --topology 2xCPU --reference
// RUN: neuroshard-run %t/artifact --batch 9 --pooling 3 --tolerance 1e-6
// RUN: not neuroshard-opt %s --neuroshard-raise-lookups=weights-file=%t/none/rows.safetensors 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: error: weights-file: {{.*}}none/rows.safetensors
// RUN: cp %s %t/own.mlir
// RUN: not neuroshard-opt %t/own.mlir --neuroshard-raise-lookups=weights-file=%t/own.mlir 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: diff %s %t/own.mlir
// OWN: error: weights-file: '{{.*}}own.mlir' is there and is no safetensors file; name another file to write

// A pass that fails afterwards leaves an earlier file, and none beside it.
// RUN: cp %t/rows.safetensors %t/kept.safetensors
// RUN: not neuroshard-opt %s --neuroshard-raise-lookups=weights-file=%t/new.safetensors --neuroshard-verify-sharded
// RUN: sed 's/dense<0.5>/dense<0.25>/' %s > %t/other.mlir
// RUN: not neuroshard-opt %t/other.mlir --neuroshard-raise-lookups=weights-file=%t/kept.safetensors --neuroshard-verify-sharded
// RUN: cmp %t/rows.safetensors %t/kept.safetensors
// RUN: ls %t | FileCheck %s --check-prefix=LEFT
// LEFT-NOT: new.safetensors
// LEFT-NOT: safetensors-

// ROWS: "user"

// CHECK:      neuroshard.table private @user : 10 x 4 x f32
// CHECK:      func.func @forward(%[[J:.*]]: !ids) -> tensor<?x4xf32>
// CHECK-NEXT:   %[[SUMS:.*]] = neuroshard.lookup sum @user[%[[J]], "clicks"]
// CHECK-NEXT:   return %[[SUMS]]
module attributes {neuroshard.batch = 9 : i64} {
  func.func @forward(%ids: tensor<?x3x1xi64> loc("clicks")) -> tensor<?x4xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %user = arith.constant dense<0.5> : tensor<10x4xf32> loc("user")
    %n = tensor.dim %ids, %c0 : tensor<?x3x1xi64>
    %room = tensor.empty(%n) : tensor<?x4xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<?x4xf32>) -> tensor<?x4xf32>
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<10x4xf32>, tensor<?x3x1xi64>) -> tensor<?x3x4xf32>
    %sums = linalg.reduce {arith.addf} ins(%rows : tensor<?x3x4xf32>) outs(%zeros : tensor<?x4xf32>) dimensions = [1]
    return %sums : tensor<?x4xf32>
  }
}
