// Ids that depend on more than their sample, and other near lookups: the reason of each.
// RUN: neuroshard-opt-raw %s --allow-unregistered-dialect --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

// Each device has a part of the batch: the place of a sample in it is not its place in the whole one.
func.func @place_in_batch(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64> loc("ids")) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %last = arith.subi %n, %c1 : index
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{its ids depend on the place of the sample in the batch, of which each device has a part}}
  %r = linalg.generic {indexing_maps=[affine_map<(b,d)->(b,d)>], iterator_types=["parallel","parallel"]} outs(%e: tensor<?x4xf32>) {
  ^bb0(%o: f32):
    %b = linalg.index 0 : index
    %d = linalg.index 1 : index
    %k = arith.subi %last, %b : index
    %id = tensor.extract %ids[%k] : tensor<?xi64>
    %i = arith.index_cast %id : i64 to index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

func.func @next_samples(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?xi64> loc("ids"), %w: tensor<?x3xf32> loc("w")) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %z = arith.constant 0.0 : f32
  %n = tensor.dim %w, %c0 : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%z: f32) outs(%e: tensor<?x4xf32>) -> tensor<?x4xf32>
  // expected-error @+1 {{a sample must read its own ids: the index in dimension 0 of an operand is d0 + d1}}
  %r = linalg.generic {indexing_maps=[affine_map<(b,l,d)->(b+l)>, affine_map<(b,l,d)->(b,l)>, affine_map<(b,l,d)->(b,d)>], iterator_types=["parallel","reduction","parallel"]} ins(%ids, %w: tensor<?xi64>, tensor<?x3xf32>) outs(%f: tensor<?x4xf32>) {
  ^bb0(%id: i64, %ww: f32, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 2 : index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    %x = arith.mulf %ww, %v : f32
    %a = arith.addf %x, %o : f32
    linalg.yield %a : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

// The rows of a tensor of unknown rank are no table.
func.func @unranked(%tt: tensor<*xf32> loc("t"), %ids: tensor<?xi64> loc("ids")) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %t = tensor.cast %tt : tensor<*xf32> to tensor<300x4xf32>
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{the table must have two dimensions, rows and columns}}
  %r = linalg.generic {indexing_maps=[affine_map<(b,d)->(b)>, affine_map<(b,d)->(b,d)>], iterator_types=["parallel","parallel"]} ins(%ids: tensor<?xi64>) outs(%e: tensor<?x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %i = arith.index_cast %id : i64 to index
    %d = linalg.index 1 : index
    %v = tensor.extract %t[%i, %d] : tensor<300x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

func.func @unranked_loop(%tt: tensor<*xf32> loc("t"), %ids: tensor<?xi64>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.cast %tt : tensor<*xf32> to tensor<300x4xf32>
  %n = tensor.dim %ids, %c0 : tensor<?xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  // expected-error @+1 {{the table must have two dimensions, rows and columns}}
  %r = scf.for %s = %c0 to %n step %c1 iter_args(%o = %e) -> tensor<?x4xf32> {
      %id = tensor.extract %ids[%s] : tensor<?xi64>
      %i = arith.index_cast %id : i64 to index
      %row = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<300x4xf32> to tensor<4xf32>
      %p = tensor.insert_slice %row into %o[%s, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
      scf.yield %p : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

// 3.5 is not the number of ids.
func.func @other_divisor(%t: tensor<23x4xf32> loc("t"), %ids: tensor<?x3xi64> loc("ids")) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %k = arith.constant 3.5 : f32
  %n = tensor.dim %ids, %c0 : tensor<?x3xi64>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %r = scf.for %s = %c0 to %n step %c1 iter_args(%o = %e) -> tensor<?x4xf32> {
    %zz = tensor.splat %z : tensor<4xf32>
    %sum = scf.for %j = %c0 to %c3 step %c1 iter_args(%a = %zz) -> tensor<4xf32> {
      %id = tensor.extract %ids[%s, %j] : tensor<?x3xi64>
      %i = arith.index_cast %id : i64 to index
      %row = tensor.extract_slice %t[%i, 0] [1, 4] [1, 1] : tensor<23x4xf32> to tensor<4xf32>
      %b = arith.addf %a, %row : tensor<4xf32>
      scf.yield %b : tensor<4xf32>
    }
    %kk = tensor.splat %k : tensor<4xf32>
    // expected-error @+1 {{a mean divides by the number of ids of the bag}}
    %m = arith.divf %sum, %kk : tensor<4xf32>
    %p = tensor.insert_slice %m into %o[%s, 0] [1, 4] [1, 1] : tensor<4xf32> into tensor<?x4xf32>
    scf.yield %p : tensor<?x4xf32>
  }
  return %r : tensor<?x4xf32>
}

// -----

// The id of the first sample for all.
func.func @first_sample(%t: tensor<23x4xf32>, %ids: tensor<?xi64>, %room: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  // expected-error @+1 {{its ids may be those of another sample, which may be on another device: 'tensor.extract' reads 'tensor<?xi64>' at an index that is no loop}}
  %r = linalg.generic {indexing_maps = [affine_map<(b, d) -> (b, d)>], iterator_types = ["parallel", "parallel"]} outs(%room : tensor<?x4xf32>) {
  ^bb0(%o: f32):
    %d = linalg.index 1 : index
    %id = tensor.extract %ids[%c0] : tensor<?xi64>
    %i = arith.index_cast %id : i64 to index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

// The place by way of a narrow integer.
func.func @narrow_place(%t: tensor<23x4xf32>, %ids: tensor<?xi64>, %room: tensor<?x4xf32>) -> tensor<?x4xf32> {
  // expected-error @+1 {{its ids depend on the place of the sample in the batch}}
  %r = linalg.generic {indexing_maps = [affine_map<(b, d) -> (b)>, affine_map<(b, d) -> (b, d)>], iterator_types = ["parallel", "parallel"]}
      ins(%ids : tensor<?xi64>) outs(%room : tensor<?x4xf32>) {
  ^bb0(%id: i64, %o: f32):
    %b = linalg.index 0 : index
    %d = linalg.index 1 : index
    %narrow = arith.index_cast %b : index to i32
    %place = arith.extsi %narrow : i32 to i64
    %sum = arith.addi %id, %place : i64
    %i = arith.index_cast %sum : i64 to index
    %v = tensor.extract %t[%i, %d] : tensor<23x4xf32>
    linalg.yield %v : f32
  } -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}

// -----

// An op of another dialect with a region could have symbols of its own; what names the function is found all the same.
func.func @called(%t: tensor<23x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  // expected-error @+1 {{the table is an argument of '@called', whose calls cannot all be inlined}}
  %r = tensor.gather %t[%ids] gather_dims([0]) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  return %r : tensor<?x4xf32>
}
func.func @caller(%t: tensor<23x4xf32>, %ids: tensor<?x1xi64>) -> tensor<?x4xf32> {
  %r = call @called(%t, %ids) : (tensor<23x4xf32>, tensor<?x1xi64>) -> tensor<?x4xf32>
  "other.op"() ({
    "other.end"() {function = @called} : () -> ()
  }) : () -> ()
  return %r : tensor<?x4xf32>
}
