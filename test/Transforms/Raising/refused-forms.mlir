// Rows selected in forms that are not raised are named all the same.
// RUN: neuroshard-opt-raw %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

func.func @computed_id(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r = scf.for %s = %c0 to %n step %c1 iter_args(%o = %e) -> tensor<?x4xf32> {
      %id = tensor.extract %ids[%s] : tensor<?xi64>
      %i0 = arith.index_cast %id : i64 to index
      %i = arith.addi %i0, %c1 : index
      %row = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<23x4xf32> to tensor<4xf32>
      %p = tensor.insert_slice %row into %o[%s, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
      scf.yield %p : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @loop_over_columns(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r = scf.for %s = %c0 to %n step %c1 iter_args(%o = %e) -> tensor<?x4xf32> {
     %q = scf.for %d = %c0 to %c4 step %c1 iter_args(%oo = %o) -> tensor<?x4xf32> {
      %id = tensor.extract %ids[%s] : tensor<?xi64>
      %i = arith.index_cast %id : i64 to index
      %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
      %p = tensor.insert %v into %oo[%s, %d] : tensor<?x4xf32>
      scf.yield %p : tensor<?x4xf32>
     }
      scf.yield %q : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @affine_loop(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r = affine.for %s = 0 to %n iter_args(%o = %e) -> tensor<?x4xf32> {
      %id = tensor.extract %ids[%s] : tensor<?xi64>
      %i = arith.index_cast %id : i64 to index
      %row = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<23x4xf32> to tensor<4xf32>
      %p = tensor.insert_slice %row into %o[%s, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
      affine.yield %p : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @while_loop(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %k, %r = scf.while (%s = %c0, %o = %e) : (index, tensor<?x4xf32>) -> (index, tensor<?x4xf32>) {
     %c = arith.cmpi slt, %s, %n : index
     scf.condition(%c) %s, %o : index, tensor<?x4xf32>
  } do {
  ^bb0(%s: index, %o: tensor<?x4xf32>):
      %id = tensor.extract %ids[%s] : tensor<?xi64>
      %i = arith.index_cast %id : i64 to index
      %row = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<23x4xf32> to tensor<4xf32>
      %p = tensor.insert_slice %row into %o[%s, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
      %s1 = arith.addi %s, %c1 : index
      scf.yield %s1, %p : index, tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

func.func @generate(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r = tensor.generate %n {
  ^bb0(%b: index, %d: index):
      %id = tensor.extract %ids[%b] : tensor<?xi64>
      %i = arith.index_cast %id : i64 to index
      %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
      tensor.yield %v : f32
  } : tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

func.func @two_results(%t: tensor<23x4xf32> loc("t"), %u: tensor<23x4xf32> loc("u"), %ids: tensor<?xi64> loc("ids")) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r:2 = linalg.generic {indexing_maps=[affine_map<(b,d)->(b)>, affine_map<(b,d)->(b,d)>, affine_map<(b,d)->(b,d)>], iterator_types=["parallel","parallel"]} ins(%ids: tensor<?xi64>) outs(%e, %e: tensor<?x4xf32>, tensor<?x4xf32>) {
  ^bb0(%id: i64, %o: f32, %p: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    %w = tensor.extract %u[%i, %d] : tensor<23x4xf32>
    linalg.yield %v, %w : f32, f32
  } -> (tensor<?x4xf32>, tensor<?x4xf32>)
  return %r#0, %r#1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

func.func @buffers(%t: memref<23x4xf32> loc("t"), %ids: memref<?xi64>, %o: memref<?x4xf32>) {
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  linalg.generic {indexing_maps=[affine_map<(b,d)->(b)>, affine_map<(b,d)->(b,d)>], iterator_types=["parallel","parallel"]} ins(%ids: memref<?xi64>) outs(%o: memref<?x4xf32>) {
  ^bb0(%id: i64, %x: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %v = memref.load %t[%i, %d] : memref<23x4xf32>
    linalg.yield %v : f32
  }
  return
}

// -----

func.func @index_select(%t: !torch.vtensor<[23,4],f32> loc("t"), %ids: !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32> {
  %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
  // expected-error @+1 {{its dim must be the constant 0: lookups select whole rows}}
  %r = "torch.aten.index_select"(%t, %one, %ids) : (!torch.vtensor<[23,4],f32>, !torch.int, !torch.vtensor<[?],si64>) -> !torch.vtensor<[?,4],f32>
  return %r : !torch.vtensor<[?,4],f32>
}

// -----

func.func @tosa(%t: tensor<1x23x4xf32> loc("t"), %ids: tensor<1x5xi32>) -> tensor<1x5x4xf32> {
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised; docs/raising.md lists those that are}}
  %r = tosa.gather %t, %ids : (tensor<1x23x4xf32>, tensor<1x5xi32>) -> tensor<1x5x4xf32>
  return %r : tensor<1x5x4xf32>
}

// -----

func.func @map(%t: tensor<23x4xf32>, %ids: tensor<5xi32>, %room: tensor<5xf32>) -> tensor<5xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{selects rows of a table by ids in a form that is not raised}}
  %r = linalg.map ins(%ids : tensor<5xi32>) outs(%room : tensor<5xf32>) (%id: i32, %o: f32) {
    %i = arith.index_cast %id : i32 to index
    %v = tensor.extract %t[%i, %c0] : tensor<23x4xf32>
    linalg.yield %v : f32
  }
  return %r : tensor<5xf32>
}

// -----

// What is computed can be no table, and an index that is not loaded is no id.
func.func @no_lookups(%t: tensor<23x4xf32>, %ids: tensor<5xi32>) -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  %computed = arith.negf %t : tensor<23x4xf32>
  %a = tensor.generate {
  ^bb0(%b: index, %d: index):
    %id = tensor.extract %ids[%b] : tensor<5xi32>
    %i = arith.index_cast %id : i32 to index
    %v = tensor.extract %computed[%i, %d] : tensor<23x4xf32>
    tensor.yield %v : f32
  } : tensor<5x4xf32>
  %c = tensor.generate {
  ^bb0(%b: index, %d: index):
    %i = arith.addi %b, %d : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    tensor.yield %v : f32
  } : tensor<5x4xf32>
  return %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
}
