// On several devices a reduction over the samples would be one over the samples of a device.
// RUN: split-file %s %t
// RUN: not neuroshard-opt %t/mean.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU})" 2>&1 | FileCheck %s --check-prefix=MEAN
// RUN: not neuroshard-compile %t/mean.mlir --topology 2xCPU -o %t/artifact 2>&1 | FileCheck %s --check-prefix=MEAN
// RUN: not neuroshard-opt %t/product.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU})" 2>&1 | FileCheck %s --check-prefix=PRODUCT
// RUN: not neuroshard-opt %t/called.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU})" 2>&1 | FileCheck %s --check-prefix=CALLED

// One device has the whole batch; and local reductions may be what is meant.
// RUN: neuroshard-opt %t/mean.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=1xCPU})" | FileCheck %s
// RUN: neuroshard-opt %t/mean.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU local-reductions=true})" | FileCheck %s
// RUN: neuroshard-compile %t/mean.mlir --topology 2xCPU --local-reductions -o %t/artifact
// RUN: neuroshard-opt %t/each.mlir --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU})" | FileCheck %s
// CHECK: neuroshard.device_program

// MEAN: mean.mlir:14:12: error: 'linalg.reduce' op reduces over the samples of a lookup's result: each of 2 devices would reduce over its part of the batch; compute it outside, where the whole batch is, or allow it with the option 'local-reductions' if that is what is meant

//--- mean.mlir
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @user : 100 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %u, %c0 : tensor<?x4xf32>
    %v = arith.mulf %u, %u : tensor<?x4xf32>
    %w = tensor.expand_shape %v [[0], [1, 2]] output_shape [%n, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32>
    %x = tensor.collapse_shape %w [[0], [1, 2]] : tensor<?x2x2xf32> into tensor<?x4xf32>
    %room = tensor.empty() : tensor<4xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<4xf32>) -> tensor<4xf32>
    %sum = linalg.reduce {arith.addf} ins(%x : tensor<?x4xf32>) outs(%zeros : tensor<4xf32>) dimensions = [0]
    %all = tensor.empty(%n) : tensor<?x4xf32>
    %r = linalg.broadcast ins(%sum : tensor<4xf32>) outs(%all : tensor<?x4xf32>) dimensions = [0]
    return %r : tensor<?x4xf32>
  }
}

// What each sample has is multiplied and added up over its columns, then over the samples.
// PRODUCT: product.mlir:14:10: error: 'linalg.generic' op reduces over the samples of a lookup's result

//--- product.mlir
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @user : 100 x 4 x f32
  func.func @forward(%ids: !ids, %w: tensor<4x3xf32>) -> tensor<?x3xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %u, %c0 : tensor<?x4xf32>
    %room = tensor.empty(%n) : tensor<?x3xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<?x3xf32>) -> tensor<?x3xf32>
    %y = linalg.matmul ins(%u, %w : tensor<?x4xf32>, tensor<4x3xf32>) outs(%zeros : tensor<?x3xf32>) -> tensor<?x3xf32>
    %room1 = tensor.empty() : tensor<3x3xf32>
    %zeros1 = linalg.fill ins(%zero : f32) outs(%room1 : tensor<3x3xf32>) -> tensor<3x3xf32>
    %g = linalg.generic {indexing_maps = [affine_map<(i, j, b) -> (b, i)>, affine_map<(i, j, b) -> (b, j)>, affine_map<(i, j, b) -> (i, j)>],
        iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%y, %y : tensor<?x3xf32>, tensor<?x3xf32>) outs(%zeros1 : tensor<3x3xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %m, %o : f32
      linalg.yield %s : f32
    } -> tensor<3x3xf32>
    %r = linalg.matmul ins(%y, %g : tensor<?x3xf32>, tensor<3x3xf32>) outs(%zeros : tensor<?x3xf32>) -> tensor<?x3xf32>
    return %r : tensor<?x3xf32>
  }
}

// CALLED: called.mlir:8:13: error: 'linalg.softmax' op reduces over the samples of a lookup's result

//--- called.mlir
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @user : 100 x 4 x f32
  func.func private @dense(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %c0 = arith.constant 0 : index
    %n = tensor.dim %x, %c0 : tensor<?x4xf32>
    %room = tensor.empty(%n) : tensor<?x4xf32>
    %soft = linalg.softmax dimension(0) ins(%x : tensor<?x4xf32>) outs(%room : tensor<?x4xf32>) -> tensor<?x4xf32>
    return %soft : tensor<?x4xf32>
  }
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    %r = func.call @dense(%u) : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}

// Sums over columns, products over columns, and sums over the ids of each sample are of each sample.
//--- each.mlir
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @user : 100 x 4 x f32
  neuroshard.table private @item : 100 x 4 x f32
  func.func @forward(%ids: !ids) -> (tensor<?xf32>, tensor<?x4x4xf32>, tensor<?x4xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    %i = neuroshard.lookup unpooled @item[%ids, "user"] : !ids -> tensor<?x4xf32>
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %u, %c0 : tensor<?x4xf32>
    %room = tensor.empty(%n) : tensor<?xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<?xf32>) -> tensor<?xf32>
    %sum = linalg.reduce {arith.addf} ins(%u : tensor<?x4xf32>) outs(%zeros : tensor<?xf32>) dimensions = [1]
    %left = tensor.expand_shape %u [[0], [1, 2]] output_shape [%n, 4, 1] : tensor<?x4xf32> into tensor<?x4x1xf32>
    %right = tensor.expand_shape %u [[0], [1, 2]] output_shape [%n, 1, 4] : tensor<?x4xf32> into tensor<?x1x4xf32>
    %room3 = tensor.empty(%n) : tensor<?x4x4xf32>
    %zeros3 = linalg.fill ins(%zero : f32) outs(%room3 : tensor<?x4x4xf32>) -> tensor<?x4x4xf32>
    %products = linalg.batch_matmul ins(%left, %right : tensor<?x4x1xf32>, tensor<?x1x4xf32>) outs(%zeros3 : tensor<?x4x4xf32>) -> tensor<?x4x4xf32>
    %per = arith.constant 2 : index
    %rows = tensor.expand_shape %i [[0, 1], [2]] output_shape [%n, 2, 4] : tensor<?x4xf32> into tensor<?x2x4xf32>
    %room2 = tensor.empty(%n) : tensor<?x4xf32>
    %zeros2 = linalg.fill ins(%zero : f32) outs(%room2 : tensor<?x4xf32>) -> tensor<?x4xf32>
    %pooled = linalg.reduce {arith.addf} ins(%rows : tensor<?x2x4xf32>) outs(%zeros2 : tensor<?x4xf32>) dimensions = [1]
    return %sum, %products, %pooled : tensor<?xf32>, tensor<?x4x4xf32>, tensor<?x4xf32>
  }
}
