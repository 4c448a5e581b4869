// Loops that are near a lookup: the reason of each.
// RUN: neuroshard-opt-raw %s --neuroshard-raise-lookups=strict=true --split-input-file --verify-diagnostics

func.func @part_of_row(%t: tensor<100x4xf32>, %ids: tensor<8xindex>) -> tensor<8x3xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %room = tensor.empty() : tensor<8x3xf32>
  %rows = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %room) -> tensor<8x3xf32> {
    %x = tensor.extract %ids[%i] : tensor<8xindex>
    // expected-error @+1 {{its slices of the table must be whole rows: offsets [id, 0], sizes [1, 4], strides [1, 1]}}
    %row = tensor.extract_slice %t[%x, 0] [1, 3] [1, 1] : tensor<100x4xf32> to tensor<1x3xf32>
    %next = tensor.insert_slice %row into %acc[%i, 0] [1, 3] [1, 1] : tensor<1x3xf32> into tensor<8x3xf32>
    scf.yield %next : tensor<8x3xf32>
  }
  return %rows : tensor<8x3xf32>
}

// -----

// Row 7 of the result stays as it was.
func.func @seven_of_eight(%t: tensor<100x4xf32>, %ids: tensor<8xindex>, %before: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  // expected-error @+1 {{it must write all rows of its result, whose number must be that of the iterations; got: tensor<8x4xf32>}}
  %rows = scf.for %i = %c0 to %c7 step %c1 iter_args(%acc = %before) -> tensor<8x4xf32> {
    %x = tensor.extract %ids[%i] : tensor<8xindex>
    %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
    %next = tensor.insert_slice %row into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %rows : tensor<8x4xf32>
}

// -----

func.func @every_second(%t: tensor<100x4xf32>, %ids: tensor<8xindex>, %before: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  // expected-error @+1 {{a loop over samples counts in steps of 1 and carries one tensor, the result}}
  %rows = scf.for %i = %c0 to %c8 step %c2 iter_args(%acc = %before) -> tensor<8x4xf32> {
    %x = tensor.extract %ids[%i] : tensor<8xindex>
    %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
    %next = tensor.insert_slice %row into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %rows : tensor<8x4xf32>
}

// -----

// The place is an id, too: later ids may write over earlier ones.
func.func @scattered(%t: tensor<100x4xf32>, %ids: tensor<8xindex>, %before: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %rows = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %before) -> tensor<8x4xf32> {
    %x = tensor.extract %ids[%i] : tensor<8xindex>
    %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
    // expected-error @+1 {{each iteration must insert one row at its counter}}
    %next = tensor.insert_slice %row into %acc[%x, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %rows : tensor<8x4xf32>
}

// -----

// A mean that is not a number where a bag is empty: a lookup's is zero.
func.func @unguarded_mean(%t: tensor<100x4xf32>, %ids: tensor<?xindex>, %offsets: tensor<9xindex>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %room = tensor.empty() : tensor<8x4xf32>
  %means = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %room) -> tensor<8x4xf32> {
    %i1 = arith.addi %i, %c1 : index
    %begin = tensor.extract %offsets[%i] : tensor<9xindex>
    %end = tensor.extract %offsets[%i1] : tensor<9xindex>
    %sum = scf.for %j = %begin to %end step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %x = tensor.extract %ids[%j] : tensor<?xindex>
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
      %more = arith.addf %s, %row : tensor<1x4xf32>
      scf.yield %more : tensor<1x4xf32>
    }
    %length = arith.subi %end, %begin : index
    %count = arith.index_cast %length : index to i64
    %number = arith.sitofp %count : i64 to f32
    %numbers = tensor.splat %number : tensor<1x4xf32>
    // expected-error @+1 {{a mean divides by the number of ids of the bag and by 1 where there are none ('arith.maxsi', 'arith.maximumf'), without weights: the mean of an empty bag is zero}}
    %mean = arith.divf %sum, %numbers : tensor<1x4xf32>
    %next = tensor.insert_slice %mean into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %means : tensor<8x4xf32>
}

// -----

// Bags of offsets[i] to offsets[i + 2] overlap.
func.func @other_bags(%t: tensor<100x4xf32>, %ids: tensor<?xindex>, %offsets: tensor<10xindex>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %room = tensor.empty() : tensor<8x4xf32>
  // expected-error @+1 {{a bag must be a row of the ids from its begin, or the ids from offsets[i] to offsets[i + 1]}}
  %sums = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %room) -> tensor<8x4xf32> {
    %i2 = arith.addi %i, %c2 : index
    %begin = tensor.extract %offsets[%i] : tensor<10xindex>
    %end = tensor.extract %offsets[%i2] : tensor<10xindex>
    %sum = scf.for %j = %begin to %end step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %x = tensor.extract %ids[%j] : tensor<?xindex>
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
      %more = arith.addf %s, %row : tensor<1x4xf32>
      scf.yield %more : tensor<1x4xf32>
    }
    %next = tensor.insert_slice %sum into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %sums : tensor<8x4xf32>
}

// -----

// Bags of four ids where there are three: what is read behind them is not known.
func.func @too_far(%t: tensor<100x4xf32>, %ids: tensor<8x3xindex>) -> tensor<8x4xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zeros = arith.constant dense<0.0> : tensor<1x4xf32>
  %room = tensor.empty() : tensor<8x4xf32>
  // expected-error @+1 {{it counts further than there are ids or weights}}
  %sums = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %room) -> tensor<8x4xf32> {
    %sum = scf.for %j = %c0 to %c4 step %c1 iter_args(%s = %zeros) -> tensor<1x4xf32> {
      %x = tensor.extract %ids[%i, %j] : tensor<8x3xindex>
      %row = tensor.extract_slice %t[%x, 0] [1, 4] [1, 1] : tensor<100x4xf32> to tensor<1x4xf32>
      %more = arith.addf %s, %row : tensor<1x4xf32>
      scf.yield %more : tensor<1x4xf32>
    }
    %next = tensor.insert_slice %sum into %acc[%i, 0] [1, 4] [1, 1] : tensor<1x4xf32> into tensor<8x4xf32>
    scf.yield %next : tensor<8x4xf32>
  }
  return %sums : tensor<8x4xf32>
}
