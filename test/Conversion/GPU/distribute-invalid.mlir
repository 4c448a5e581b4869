// What cannot be distributed over lanes is an error: an op without a meaning for a lane, vectors
// that lanes cannot share, accesses that are not to neighbours, attributes that are missing.
// RUN: neuroshard-opt %s --neuroshard-distribute-over-lanes --split-input-file --verify-diagnostics

gpu.module @kernels {
  func.func private @unknown(%v: vector<8xf32>, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 8 : i64} {
    // expected-error@+1 {{'vector.shuffle' op cannot be distributed over the lanes of a warp}}
    %turned = vector.shuffle %v, %v [7, 6, 5, 4, 3, 2, 1, 0] : vector<8xf32>, vector<8xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @store(%x: memref<8xf32>, %v: f32, %i: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 8 : i64} {
    // expected-error@+1 {{'memref.store' op cannot be distributed over the lanes of a warp}}
    memref.store %v, %x[%i] : memref<8xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @product(%v: vector<8xf32>, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 8 : i64} {
    // expected-error@+1 {{'vector.reduction' op cannot be distributed over the lanes of a warp}}
    %product = vector.reduction <mul>, %v : vector<8xf32> into f32
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @one(%x: memref<8xf32>, %i: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 8 : i64} {
    %pad = arith.constant 0.0 : f32
    // expected-error@+1 {{'vector.transfer_read' op cannot be distributed over the lanes of a warp}}
    %v = vector.transfer_read %x[%i], %pad {in_bounds = [true]} : memref<8xf32>, vector<1xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @six(%lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 6 : i64} {
    // expected-error@+1 {{'arith.constant' op has a vector that 4 lanes cannot share equally: 'vector<6xf32>'}}
    %zero = arith.constant dense<0.0> : vector<6xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @outside(%x: memref<8xf32>, %i: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 8 : i64} {
    %pad = arith.constant 0.0 : f32
    // expected-error@+1 {{'vector.transfer_read' op must take neighbouring elements, all in bounds, of a memref of one or two dimensions}}
    %v = vector.transfer_read %x[%i], %pad : memref<8xf32>, vector<8xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @part_of_a_lane(%lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 10 : i64} {
    // expected-error@+1 {{'vector.constant_mask' op masks a part of a lane's 4 elements: 10 are there}}
    %there = vector.constant_mask [10] : vector<16xi1>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @padding(%x: memref<16xf32>, %i: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 12 : i64} {
    %pad = arith.constant 0.0 : f32
    %there = vector.constant_mask [12] : vector<16xi1>
    // expected-error@+1 {{'vector.transfer_read' op cannot be distributed over the lanes of a warp}}
    %v = vector.transfer_read %x[%i], %pad, %there {in_bounds = [true]} : memref<16xf32>, vector<16xf32>
    return
  }
}

// -----

gpu.module @kernels {
  func.func private @other_mask(%x: memref<16xf32>, %i: index, %there: vector<16xi1>,
      %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 12 : i64} {
    %poison = ub.poison : f32
    // expected-error@+1 {{'vector.transfer_read' op must take neighbouring elements, all in bounds, of a memref of one or two dimensions}}
    %v = vector.transfer_read %x[%i], %poison, %there {in_bounds = [true]} : memref<16xf32>, vector<16xf32>
    return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{'func.func' op must have a power of two up to 32 as 'nsg.lanes', got: 12 : i64}}
  func.func private @twelve(%lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 12 : i64, nsg.row_columns = 12 : i64} {
    return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{'func.func' op must have the columns of a row, at least 1, as 'nsg.row_columns'}}
  func.func private @columns(%lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64} {
    return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{'func.func' op must have an argument of type 'i32' with the attribute 'nsg.lane_mask'}}
  func.func private @mask(%lane: index {nsg.lane}, %mask: i32)
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 4 : i64} {
    return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{'func.func' op must have a body of one block and no results to be distributed over lanes}}
  func.func private @result(%lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask}) -> index
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 4 : i64} {
    return %lane : index
  }
}
