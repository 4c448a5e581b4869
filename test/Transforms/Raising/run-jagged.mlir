// Ids with weights, torch's ids with offsets, and a vector of ids with a dimension added for the gather, as jagged
// arguments of a program that runs: the same as the unsharded program, on three devices.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-opt %s --allow-unregistered-dialect --neuroshard-raise-lookups="strict=true jagged-arguments=true" -o %t/logical.mlir
// RUN: FileCheck %s --input-file=%t/logical.mlir
// RUN: neuroshard-compile %t/logical.mlir -o %t/artifact --topology 3xCPU --reference
// RUN: neuroshard-run %t/artifact --batch 11 --pooling 3 --tolerance 1e-6

// CHECK-DAG:  !ids = !neuroshard.jagged<["clicks"], i32, weighted>
// CHECK-DAG:  !ids1 = !neuroshard.jagged<["views"], i64>
// CHECK-DAG:  !ids2 = !neuroshard.jagged<["brands"], i64>
// CHECK:      func.func @forward(%[[CLICKS:.*]]: !ids, %[[VIEWS:.*]]: !ids1, %[[BRANDS:.*]]: !ids2)
// CHECK-SAME:     -> (tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x2xf32>)
// CHECK-NEXT:   %[[SUM:.*]] = neuroshard.lookup sum @user[%[[CLICKS]], "clicks"] weighted
// CHECK-NEXT:   %[[MEAN:.*]] = neuroshard.lookup mean @item[%[[VIEWS]], "views"] padding_idx 3
// CHECK-NEXT:   %[[ROWS:.*]] = neuroshard.lookup unpooled @brand[%[[BRANDS]], "brands"]
// CHECK-NEXT:   return %[[SUM]], %[[MEAN]], %[[ROWS]]

module attributes {neuroshard.batch = 11 : i64} {
  func.func @forward(%user: tensor<10x4xf32> loc("user"), %clicks: tensor<?x3xi32> loc("clicks"), %w: tensor<?x3xf32>,
      %item: !torch.vtensor<[20,8],f32> loc("item"), %views: !torch.vtensor<[?],si64> loc("views"), %offsets: !torch.vtensor<[?],si64>,
      %brand: tensor<30x2xf32> loc("brand"), %brands: tensor<?xi64> loc("brands"))
      -> (tensor<?x4xf32>, !torch.vtensor<[?,8],f32>, tensor<?x2xf32>) {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %n = tensor.dim %clicks, %c0 : tensor<?x3xi32>
    %room = tensor.empty(%n) : tensor<?x4xf32>
    %zeros = linalg.fill ins(%zero : f32) outs(%room : tensor<?x4xf32>) -> tensor<?x4xf32>
    %sums = linalg.generic {indexing_maps = [affine_map<(b, l, d) -> (b, l)>, affine_map<(b, l, d) -> (b, l)>, affine_map<(b, l, d) -> (b, d)>],
        iterator_types = ["parallel", "reduction", "parallel"]}
        ins(%clicks, %w : tensor<?x3xi32>, tensor<?x3xf32>) outs(%zeros : tensor<?x4xf32>) {
    ^bb0(%id: i32, %weight: f32, %sum: f32):
      %i = arith.index_cast %id : i32 to index
      %d = linalg.index 2 : index
      %x = tensor.extract %user[%i, %d] : tensor<10x4xf32>
      %y = arith.mulf %x, %weight : f32
      %s = arith.addf %sum, %y : f32
      linalg.yield %s : f32
    } -> tensor<?x4xf32>
    %one = "torch.constant.int"() <{value = 1 : i64}> : () -> !torch.int
    %three = "torch.constant.int"() <{value = 3 : i64}> : () -> !torch.int
    %no = "torch.constant.bool"() <{value = false}> : () -> !torch.bool
    %yes = "torch.constant.bool"() <{value = true}> : () -> !torch.bool
    %none = "torch.constant.none"() : () -> !torch.none
    %0:4 = "torch.aten.embedding_bag.padding_idx"(%item, %views, %offsets, %no, %one, %no, %none, %yes, %three) : (!torch.vtensor<[20,8],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.bool, !torch.int, !torch.bool, !torch.none, !torch.bool, !torch.int) -> (!torch.vtensor<[?,8],f32>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>, !torch.vtensor<[?],si64>)
    %many = tensor.dim %brands, %c0 : tensor<?xi64>
    %column = tensor.expand_shape %brands [[0, 1]] output_shape [%many, 1] : tensor<?xi64> into tensor<?x1xi64>
    %rows = tensor.gather %brand[%column] gather_dims([0]) : (tensor<30x2xf32>, tensor<?x1xi64>) -> tensor<?x2xf32>
    return %sums, %0#0, %rows : tensor<?x4xf32>, !torch.vtensor<[?,8],f32>, tensor<?x2xf32>
  }
}
