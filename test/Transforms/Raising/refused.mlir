// What looks like a lookup and is none is an error with 'strict', with the reason.
// RUN: neuroshard-opt-raw %s --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

// Without it, a remark; nothing changes.
// RUN: neuroshard-opt %s --neuroshard-raise-lookups --split-input-file --remarks-filter=neuroshard-raise-lookups --remark-format=emitRemark -o %t 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAME --input-file=%t
// CHECK: remark: [Missed] NotRaised | Category:neuroshard-raise-lookups | Remark="'tensor.gather' looks like a lookup: lookups select whole rows by one index in dimension 0
// SAME-NOT: neuroshard.lookup

func.func @second_dimension(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x100xf32> {
  // expected-error @+1 {{'tensor.gather' op looks like a lookup and is not raised: lookups select whole rows by one index in dimension 0}}
  %rows = tensor.gather %t[%ids] gather_dims([1]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x100xf32>
  return %rows : tensor<?x100xf32>
}

// -----

func.func @two_indices(%t: tensor<100x4xf32>, %ids: tensor<?x2xi64>) -> tensor<?xf32> {
  // expected-error @+1 {{is not raised: lookups select whole rows by one index in dimension 0}}
  %rows = tensor.gather %t[%ids] gather_dims([0, 1]) : (tensor<100x4xf32>, tensor<?x2xi64>) -> tensor<?xf32>
  return %rows : tensor<?xf32>
}

// -----

func.func @three_dimensions(%t: tensor<100x4x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4x4xf32> {
  // expected-error @+1 {{is not raised: the table must have two dimensions, rows and columns}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4x4xf32>, tensor<?x1xi64>) -> tensor<?x4x4xf32>
  return %rows : tensor<?x4x4xf32>
}

// -----

func.func @unknown_rows(%t: tensor<?x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is not raised: the numbers of rows and columns of the table must be known, got: tensor<?x4xf32>}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<?x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

func.func @double(%t: tensor<100x4xf64>, %ids: tensor<?x1xi64>) -> tensor<?x4xf64> {
  // expected-error @+1 {{is not raised: the element type of the table must be f32, f16 or bf16, got: f64}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf64>, tensor<?x1xi64>) -> tensor<?x4xf64>
  return %rows : tensor<?x4xf64>
}

// -----

func.func @bytes(%t: tensor<100x4xf32>, %ids: tensor<?x1xi8>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is not raised: ids must be i32, i64 or index, got: i8}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi8>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

func.func @computed(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %twice = arith.addf %t, %t : tensor<100x4xf32>
  // expected-error @+1 {{is not raised: the table must be an argument of a function, a constant or a global; this one is computed by 'arith.addf'}}
  %rows = tensor.gather %twice[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

func.func @tied(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> (tensor<?x4xf32>, tensor<100x4xf32>) {
  // expected-error @+1 {{is not raised: the table is also used by 'arith.addf', which is no lookup that can be raised; its rows will be on other devices}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %twice = arith.addf %t, %t : tensor<100x4xf32>
  return %rows, %twice : tensor<?x4xf32>, tensor<100x4xf32>
}

// -----

// One lookup that cannot be raised keeps the other.
func.func @one_of_two(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> (tensor<?x4xf32>, tensor<?x100xf32>) {
  // expected-error @+1 {{is not raised: the table is also used by 'tensor.gather'}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  // expected-error @+1 {{is not raised: lookups select whole rows}}
  %columns = tensor.gather %t[%ids] gather_dims([1]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x100xf32>
  return %rows, %columns : tensor<?x4xf32>, tensor<?x100xf32>
}

// -----

func.func @constant(%ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %t = arith.constant dense<0.5> : tensor<100x4xf32>
  // expected-error @+1 {{is not raised: the values of the table would be lost; name a file for them with the option 'weights-file'}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

func.func private @callee(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  // expected-error @+1 {{is not raised: the table is an argument of '@callee', whose calls cannot all be inlined: it calls itself, has several blocks or is named by another op}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  %again = call @callee(%t, %ids) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %again : tensor<?x4xf32>
}
func.func @caller(%t: tensor<100x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %rows = call @callee(%t, %ids) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

func.func @branch(%t: tensor<100x4xf32>, %ids: tensor<8x1xi64>, %c: i1) -> tensor<8x4xf32> {
  %rows = scf.if %c -> tensor<8x4xf32> {
    // expected-error @+1 {{is not raised: it is in a region or branch: every device takes part in every lookup of every step}}
    %0 = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<8x1xi64>) -> tensor<8x4xf32>
    scf.yield %0 : tensor<8x4xf32>
  } else {
    %1 = tensor.empty() : tensor<8x4xf32>
    scf.yield %1 : tensor<8x4xf32>
  }
  return %rows : tensor<8x4xf32>
}

// -----

ml_program.global private mutable @w(#ml_program.extern<tensor<100x4xf32>>) : tensor<100x4xf32>
func.func @written(%ids: tensor<?x1xi64>, %new: tensor<100x4xf32>) -> tensor<?x4xf32> {
  %t = ml_program.global_load @w : tensor<100x4xf32>
  // expected-error @+1 {{is not raised: the table is also used by 'ml_program.global_store'}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  ml_program.global_store @w = %new : tensor<100x4xf32>
  return %rows : tensor<?x4xf32>
}

// -----

memref.global @w : memref<100x4xf32>
func.func @public(%ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %buffer = memref.get_global @w : memref<100x4xf32>
  %t = bufferization.to_tensor %buffer : memref<100x4xf32> to tensor<100x4xf32>
  // expected-error @+1 {{the table's global is public and no constant: code outside the module may write it}}
  %rows = tensor.gather %t[%ids] gather_dims([0]) : (tensor<100x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %rows : tensor<?x4xf32>
}
