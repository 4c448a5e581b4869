// Generics that are near a lookup: the reason of each.
// RUN: neuroshard-opt-raw %s --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

#id = affine_map<(b, d) -> (b)>
#row = affine_map<(b, d) -> (b, d)>
#swapped = affine_map<(b, d) -> (d, b)>

func.func @column(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<8x100xf32> {
  %room = tensor.empty() : tensor<8x100xf32>
  // expected-error @+1 {{the column of an element must be a loop of its own: lookups select whole rows by an index in dimension 0}}
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%room : tensor<8x100xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%d, %i] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<8x100xf32>
  return %0 : tensor<8x100xf32>
}

// -----

#id = affine_map<(b, d) -> (b)>
#row = affine_map<(b, d) -> (b, d)>
func.func @part_of_rows(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<8x3xf32> {
  %room = tensor.empty() : tensor<8x3xf32>
  // expected-error @+1 {{it must take all 4 columns of a row, got: tensor<8x3xf32>}}
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%room : tensor<8x3xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<8x3xf32>
  return %0 : tensor<8x3xf32>
}

// -----

#id = affine_map<(b, d) -> (b)>
#swapped = affine_map<(b, d) -> (d, b)>
func.func @transposed(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<4x8xf32> {
  %room = tensor.empty() : tensor<4x8xf32>
  // expected-error @+1 {{the dimensions of the result must be those of the ids, the bag's last, and then the columns}}
  %0 = linalg.generic {indexing_maps = [#id, #swapped], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%room : tensor<4x8xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

#row = affine_map<(b, d) -> (b, d)>
func.func @id_by_column(%t: tensor<100x4xf32>, %ids: tensor<8x4xi64>) -> tensor<8x4xf32> {
  %room = tensor.empty() : tensor<8x4xf32>
  // expected-error @+1 {{the row index depends on the column}}
  %0 = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8x4xi64>) outs(%room : tensor<8x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %j = arith.addi %i, %i : index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%j, %d] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#id = affine_map<(b, d) -> (b)>
#row = affine_map<(b, d) -> (b, d)>
func.func @more(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<8x4xf32> {
  %room = tensor.empty() : tensor<8x4xf32>
  // expected-error @+1 {{its body computes more than an element of a row, or its sum; keep the rest in an op of its own}}
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%room : tensor<8x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    %y = arith.negf %x : f32
    linalg.yield %y : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#id = affine_map<(b, d) -> (b)>
#row = affine_map<(b, d) -> (b, d)>
func.func @other_assert(%t: tensor<100x4xf32>, %ids: tensor<8xi64>) -> tensor<8x4xf32> {
  %room = tensor.empty() : tensor<8x4xf32>
  // expected-error @+1 {{its body asserts something else than the range of the ids}}
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<8xi64>) outs(%room : tensor<8x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %seven = arith.constant 7 : i64
    %ok = arith.cmpi slt, %id, %seven : i64
    cf.assert %ok, "small ids alone"
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    linalg.yield %x : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#ids = affine_map<(b, l, d) -> (b, l)>
#sums = affine_map<(b, l, d) -> (b, d)>
func.func @from_one(%t: tensor<100x4xf32>, %ids: tensor<8x3xi64>) -> tensor<8x4xf32> {
  %ones = arith.constant dense<1.0> : tensor<8x4xf32>
  // expected-error @+1 {{its sums do not begin at zero}}
  %0 = linalg.generic {indexing_maps = [#ids, #sums], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%ids : tensor<8x3xi64>) outs(%ones : tensor<8x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    %s = arith.addf %out, %x : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

#ids = affine_map<(b, l, d) -> (b, l)>
#sums = affine_map<(b, l, d) -> (b, d)>
func.func @maximum(%t: tensor<100x4xf32>, %ids: tensor<8x3xi64>) -> tensor<8x4xf32> {
  %zeros = arith.constant dense<0.0> : tensor<8x4xf32>
  // expected-error @+1 {{it reduces rows otherwise than by 'arith.addf'}}
  %0 = linalg.generic {indexing_maps = [#ids, #sums], iterator_types = ["parallel", "reduction", "parallel"]}
      ins(%ids : tensor<8x3xi64>) outs(%zeros : tensor<8x4xf32>) {
  ^bb0(%id: i64, %out: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %x = tensor.extract %t[%i, %d] : tensor<100x4xf32>
    %s = arith.maximumf %out, %x : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
