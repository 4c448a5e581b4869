// Remarks and errors are at the op that is the reason, tables at the function whose argument they were.
// RUN: split-file %s %t && cd %t
// RUN: neuroshard-opt loop.mlir --neuroshard-raise-lookups --remarks-filter=neuroshard-raise-lookups -o - 2>&1 | FileCheck %s --check-prefix=LOOP
// RUN: not neuroshard-opt loop.mlir --neuroshard-raise-lookups=strict=true -o - 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: neuroshard-opt table.mlir --neuroshard-raise-lookups --remarks-filter=neuroshard-raise-lookups -o - 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: neuroshard-opt bags.mlir --neuroshard-raise-lookups=jagged-arguments=true --remarks-filter=neuroshard-raise-lookups -o - 2>&1 | FileCheck %s --check-prefix=BAGS
// RUN: neuroshard-opt clamped.mlir --allow-unregistered-dialect --neuroshard-raise-lookups=jagged-arguments=true --remarks-filter=neuroshard-raise-lookups -o - 2>&1 | FileCheck %s --check-prefix=CLAMPED
// RUN: neuroshard-opt shared.mlir --neuroshard-raise-lookups=jagged-arguments=true --remarks-filter=neuroshard-raise-lookups -o - 2>&1 | FileCheck %s --check-prefix=SHARED

// LOOP:   loop.mlir:11:15: remark: [Missed] NotRaised {{.*}}'scf.for' looks like a lookup: what a bag carries on must be its sum and a row, added by 'arith.addf', 'linalg.add' or a 'linalg.generic' of the elements in their order
// STRICT: loop.mlir:11:15: error: 'scf.for' op looks like a lookup and is not raised: what a bag carries on

//--- loop.mlir
func.func @forward(%t: tensor<9x4xf32>, %ids: tensor<?x3xindex>, %n: index) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %room = tensor.empty(%n) : tensor<?x4xf32>
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %room) -> tensor<?x4xf32> {
    %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %x = tensor.extract %ids[%i, %j] : tensor<?x3xindex>
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<1x4xf32>
      %most = arith.maximumf %s, %row : tensor<1x4xf32>
      scf.yield %most : tensor<1x4xf32>
    }
    %next = tensor.insert_slice %sum into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    scf.yield %next : tensor<?x4xf32>
  }
  return %sums : tensor<?x4xf32>
}

// TABLE: table.mlir:2:3: remark: [Passed] Table {{.*}}table 'items' was argument 0 of '@forward'

//--- table.mlir
module {
  func.func @forward(%t: tensor<9x4xf32> loc("items"), %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
    %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<9x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}

// BAGS: bags.mlir:9:11: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: bags may begin anywhere in the ids, which are cut first, unless the option 'assume-valid-inputs' says that offsets begin at 0

//--- bags.mlir
func.func @forward(%t: tensor<9x4xf32>, %ids: tensor<?xindex>, %offsets: tensor<?xindex>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %entries = tensor.dim %offsets, %c0 : tensor<?xindex>
  %n = arith.subi %entries, %c1 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %room = tensor.empty(%n) : tensor<?x4xf32>
  // The loop.
  %sums = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %room) -> tensor<?x4xf32> {
    %i1 = arith.addi %i, %c1 : index
    %begin = tensor.extract %offsets[%i] : tensor<?xindex>
    %end = tensor.extract %offsets[%i1] : tensor<?xindex>
    %sum = scf.for %j = %begin to %end step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %x = tensor.extract %ids[%j] : tensor<?xindex>
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<9x4xf32> to tensor<1x4xf32>
      %more = linalg.add ins(%s, %row : tensor<1x4xf32>, tensor<1x4xf32>) outs(%zeros : tensor<1x4xf32>) -> tensor<1x4xf32>
      scf.yield %more : tensor<1x4xf32>
    }
    %next = tensor.insert_slice %sum into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<?x4xf32>
    scf.yield %next : tensor<?x4xf32>
  }
  return %sums : tensor<?x4xf32>
}

// CLAMPED: clamped.mlir:3:8: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: ids out of range are moved to the nearest row first, unless the option 'assume-valid-inputs' says that there are none

//--- clamped.mlir
func.func @forward(%t: tensor<9x4xf32>, %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  // The gather.
  %r = "stablehlo.gather"(%t, %ids) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : (tensor<9x4xf32>, tensor<?xi64>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// SHARED: remark: [Missed] NotJagged {{.*}}its ids stay a tensor: they, their offsets or weights are no arguments of the function, or other ops read them, too

//--- shared.mlir
func.func @forward(%t: tensor<9x4xf32>, %ids: tensor<?x1xi64>) -> (tensor<?x4xf32>, tensor<?x1xi64>) {
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<9x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %r, %ids : tensor<?x4xf32>, tensor<?x1xi64>
}
