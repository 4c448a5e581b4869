// A function on whole rows becomes what one lane of its group does: neighbouring elements of each
// vector, sums by shuffles among the group's lanes, scalars in every lane, stores of scalars by
// the first.
// RUN: neuroshard-opt %s --neuroshard-distribute-over-lanes --split-input-file | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: func.func private @norm(
  // CHECK-SAME: %[[X:.*]]: memref<100x16xf32>, %[[NORMS:.*]]: memref<100xf32>, %[[ROW:.*]]: index, %[[LANE:.*]]: index, %[[MASK:.*]]: i32) {
  // CHECK: %[[BEFORE:.*]] = arith.muli %[[LANE]], %c4{{.*}} : index
  // CHECK: %[[COLUMN:.*]] = arith.addi %c0, %[[BEFORE]] : index
  // CHECK: %[[V:.*]] = vector.load %[[X]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64} : memref<100x16xf32>, vector<4xf32>
  // CHECK: %[[SQUARES:.*]] = arith.mulf %[[V]], %[[V]] : vector<4xf32>
  // CHECK-COUNT-4: vector.extract %[[SQUARES]]
  // CHECK: %[[OWN:.*]] = arith.addf
  // Four lanes, so two shuffles, under the mask of the group.
  // CHECK: %[[FROM1:.*]] = nvvm.shfl.sync bfly %[[MASK]], %[[OWN]], %c1_i32, %c31_i32 : f32 -> f32
  // CHECK: %[[OF2:.*]] = arith.addf %[[OWN]], %[[FROM1]] : f32
  // CHECK: %[[FROM2:.*]] = nvvm.shfl.sync bfly %[[MASK]], %[[OF2]], %c2_i32, %c31_i32{{.*}} : f32 -> f32
  // CHECK: %[[SUM:.*]] = arith.addf %[[OF2]], %[[FROM2]] : f32
  // CHECK-NOT: shfl
  // CHECK: %[[ONE:.*]] = vector.broadcast %[[SUM]] : f32 to vector<1xf32>
  // CHECK: nvvm.bar.warp.sync %[[MASK]] : i32
  // CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[LANE]], %c0{{.*}} : index
  // CHECK: scf.if %[[FIRST]] {
  // CHECK-NEXT: vector.store %[[ONE]], %[[NORMS]][%[[ROW]]] {alignment = 4 : i64} : memref<100xf32>, vector<1xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  func.func private @norm(%x: memref<100x16xf32>, %norms: memref<100xf32>, %row: index,
      %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 16 : i64} {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true]} : memref<100x16xf32>, vector<16xf32>
    %squares = arith.mulf %v, %v : vector<16xf32>
    %sum = vector.reduction <add>, %squares : vector<16xf32> into f32
    %one = vector.broadcast %sum : f32 to vector<1xf32>
    vector.transfer_write %one, %norms[%row] {in_bounds = [true]} : vector<1xf32>, memref<100xf32>
    return
  }

  // A function without the attribute is left alone.
  // CHECK-LABEL: func.func private @whole(
  // CHECK: arith.mulf {{.*}} : vector<16xf32>
  func.func private @whole(%v: vector<16xf32>) -> vector<16xf32> {
    %squares = arith.mulf %v, %v : vector<16xf32>
    return %squares : vector<16xf32>
  }
}

// -----

// A whole warp shuffles as one.
gpu.module @kernels {
  // CHECK-LABEL: func.func private @dot(
  // CHECK: vector.load {{.*}} {alignment = 8 : i64} : memref<100x128xbf16>, vector<4xbf16>
  // CHECK: arith.extf {{.*}} : vector<4xbf16> to vector<4xf32>
  // CHECK-COUNT-5: gpu.shuffle xor %{{.*}}, %{{.*}}, %c32_i32{{.*}} : f32
  // CHECK-NOT: nvvm.shfl
  // CHECK: nvvm.bar.warp.sync
  func.func private @dot(%x: memref<100x128xbf16>, %out: memref<100xf32>, %row: index,
      %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 32 : i64, nsg.row_columns = 128 : i64} {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : bf16
    %v = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true]} : memref<100x128xbf16>, vector<128xbf16>
    %wide = arith.extf %v : vector<128xbf16> to vector<128xf32>
    %sum = vector.reduction <add>, %wide : vector<128xf32> into f32
    %one = vector.broadcast %sum : f32 to vector<1xf32>
    vector.transfer_write %one, %out[%row] {in_bounds = [true]} : vector<1xf32>, memref<100xf32>
    return
  }
}

// -----

// Loops and branches carry the lane's part. Rows of 20 elements of 2 bytes are no whole pieces of
// 16 bytes: in an array of one dimension they are aligned to an element.
gpu.module @kernels {
  // CHECK-LABEL: func.func private @sum(
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : vector<5xf16>
  // CHECK: %[[SUM:.*]] = scf.for {{.*}} iter_args(%[[SO_FAR:.*]] = %[[ZERO]]) -> (vector<5xf16>)
  // CHECK: %[[WEIGHT:.*]] = memref.load
  // CHECK: %[[ADDED:.*]] = scf.if {{.*}} -> (vector<5xf16>) {
  // CHECK: vector.load {{.*}} {alignment = 2 : i64} : memref<1000xf16>, vector<5xf16>
  // CHECK: vector.broadcast %[[WEIGHT]] : f16 to vector<5xf16>
  // CHECK: } else {
  // CHECK: scf.yield %[[SO_FAR]] : vector<5xf16>
  // CHECK: scf.yield %[[ADDED]] : vector<5xf16>
  // CHECK: vector.store %[[SUM]], {{.*}} {alignment = 2 : i64} : memref<1000xf16>, vector<5xf16>
  func.func private @sum(%x: memref<1000xf16>, %weights: memref<50xf16>, %from: index, %to: index,
      %is_wanted: i1, %lane: index {nsg.lane}, %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 20 : i64} {
    %c20 = arith.constant 20 : index
    %c1 = arith.constant 1 : index
    %pad = arith.constant 0.0 : f16
    %zero = arith.constant dense<0.0> : vector<20xf16>
    %sum = scf.for %row = %from to %to step %c1 iter_args(%so_far = %zero) -> (vector<20xf16>) {
      %weight = memref.load %weights[%row] : memref<50xf16>
      %added = scf.if %is_wanted -> (vector<20xf16>) {
        %at = arith.muli %row, %c20 : index
        %v = vector.transfer_read %x[%at], %pad {in_bounds = [true]} : memref<1000xf16>, vector<20xf16>
        %all = vector.broadcast %weight : f16 to vector<20xf16>
        %term = arith.mulf %v, %all : vector<20xf16>
        %more = arith.addf %so_far, %term : vector<20xf16>
        scf.yield %more : vector<20xf16>
      } else {
        scf.yield %so_far : vector<20xf16>
      }
      scf.yield %added : vector<20xf16>
    }
    vector.transfer_write %sum, %x[%from] {in_bounds = [true]} : vector<20xf16>, memref<1000xf16>
    return
  }
}

// -----

// Rows of 12 elements keep three of four lanes busy. The fourth reads what the third does, adds
// nothing to the sum, and writes nothing; the third waits until it has read.
gpu.module @kernels {
  // CHECK-LABEL: func.func private @masked(
  // CHECK-SAME: %[[X:.*]]: memref<100x12xf32>, %[[ROW:.*]]: index, %[[LANE:.*]]: index, %[[MASK:.*]]: i32) {
  // CHECK: %[[BUSY:.*]] = arith.cmpi ult, %[[LANE]], %c3{{.*}} : index
  // CHECK: %[[READER:.*]] = arith.minui %[[LANE]], %c2{{.*}} : index
  // CHECK: %[[BEFORE:.*]] = arith.muli %[[READER]], %c4{{.*}} : index
  // CHECK: %[[COLUMN:.*]] = arith.addi %c0, %[[BEFORE]] : index
  // CHECK: %[[V:.*]] = vector.load %[[X]][%[[ROW]], %[[COLUMN]]] {alignment = 16 : i64} : memref<100x12xf32>, vector<4xf32>
  // CHECK: %[[THERE:.*]] = arith.select %[[BUSY]], %[[V]], %{{.*}} : vector<4xf32>
  // CHECK: vector.extract %[[THERE]]
  // CHECK: nvvm.bar.warp.sync %[[MASK]] : i32
  // CHECK: scf.if %[[BUSY]] {
  // CHECK: vector.store %{{.*}}, %[[X]][%[[ROW]], %{{.*}}] {alignment = 16 : i64} : memref<100x12xf32>, vector<4xf32>
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  func.func private @masked(%x: memref<100x12xf32>, %row: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 4 : i64, nsg.row_columns = 12 : i64} {
    %c0 = arith.constant 0 : index
    %poison = ub.poison : f32
    %zero = arith.constant dense<0.0> : vector<16xf32>
    %there = vector.constant_mask [12] : vector<16xi1>
    %v = vector.transfer_read %x[%row, %c0], %poison, %there {in_bounds = [true]} : memref<100x12xf32>, vector<16xf32>
    %own = arith.select %there, %v, %zero : vector<16xi1>, vector<16xf32>
    %sum = vector.reduction <add>, %own : vector<16xf32> into f32
    %all = vector.broadcast %sum : f32 to vector<16xf32>
    vector.transfer_write %all, %x[%row, %c0], %there {in_bounds = [true]} : vector<16xf32>, memref<100x12xf32>
    return
  }
}

// -----

// A lane alone has all of the row, and no shuffles.
gpu.module @kernels {
  // CHECK-LABEL: func.func private @alone(
  // CHECK: vector.load %{{.*}}[%{{.*}}, %c0] {alignment = 4 : i64} : memref<100x5xf32>, vector<1xf32>
  // CHECK-NOT: shuffle
  // CHECK-NOT: nvvm.
  // CHECK: vector.store {{.*}} {alignment = 4 : i64} : memref<100x5xf32>, vector<1xf32>
  func.func private @alone(%x: memref<100x5xf32>, %row: index, %lane: index {nsg.lane},
      %mask: i32 {nsg.lane_mask})
      attributes {nsg.lanes = 1 : i64, nsg.row_columns = 5 : i64} {
    %c0 = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %v = vector.transfer_read %x[%row, %c0], %pad {in_bounds = [true]} : memref<100x5xf32>, vector<1xf32>
    %sum = vector.reduction <add>, %v : vector<1xf32> into f32
    %one = vector.broadcast %sum : f32 to vector<1xf32>
    vector.transfer_write %one, %x[%row, %c0] {in_bounds = [true]} : vector<1xf32>, memref<100x5xf32>
    return
  }
}
