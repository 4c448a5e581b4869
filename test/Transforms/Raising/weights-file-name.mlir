// A table whose name a safetensors file cannot have is an error, and no file is written.
// RUN: rm -rf %t && mkdir %t
// RUN: not neuroshard-opt %s --neuroshard-raise-lookups=weights-file=%t/rows.safetensors 2>&1 | FileCheck %s
// RUN: not ls %t/rows.safetensors

// CHECK: error: weights-file: {{.*}}: tensor '__metadata__': a name must be UTF-8 and another than '__metadata__'; rename it
func.func @forward(%ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %t = arith.constant dense<1.5> : tensor<23x4xf32> loc("__metadata__")
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
