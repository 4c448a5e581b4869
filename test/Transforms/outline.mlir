// Lookups move to start and wait; dense work in between overlaps with them.
// RUN: neuroshard-opt %s --neuroshard-outline --split-input-file | FileCheck %s

!ids = !neuroshard.jagged<["user", "item"], i64>

neuroshard.table private @user : 1000 x 16 x f32
neuroshard.table private @item : 500 x 8 x f32

// The ids are an argument, so start is called first; wait is called before the
// first use of a result, after the dense work on %dense. The unused lookup goes.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[DENSE:.*]]: tensor<?x16xf32>, %[[IDS:.*]]: !ids)
// CHECK-NEXT:  %[[PENDING:.*]] = call @embeddings_start(%[[IDS]]) : (!ids) -> !pending
// CHECK-NEXT:  %[[BOTTOM:.*]] = arith.addf %[[DENSE]], %[[DENSE]]
// CHECK-NEXT:  %[[ROWS:.*]]:2 = call @embeddings_wait(%[[PENDING]]) : (!pending) -> (tensor<?x16xf32>, tensor<?x8xf32>)
// CHECK-NEXT:  %[[TOP:.*]] = arith.mulf %[[BOTTOM]], %[[ROWS]]#0
// CHECK-NEXT:  return %[[TOP]], %[[ROWS]]#1
func.func @forward(%dense: tensor<?x16xf32>, %ids: !ids) -> (tensor<?x16xf32>, tensor<?x8xf32>) {
  %user = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
  %unused = neuroshard.lookup sum @user[%ids, "item"] : !ids -> tensor<?x16xf32>
  %item = neuroshard.lookup mean @item[%ids, "item"] padding_idx 0 : !ids -> tensor<?x8xf32>
  %bottom = arith.addf %dense, %dense : tensor<?x16xf32>
  %top = arith.mulf %bottom, %user : tensor<?x16xf32>
  return %top, %item : tensor<?x16xf32>, tensor<?x8xf32>
}

// CHECK-LABEL: func.func @embeddings_start(
// CHECK-SAME:    %[[IDS:.*]]: !ids) -> !pending
// CHECK-NEXT:  %[[PENDING:.*]] = neuroshard.suspend %[[IDS]] : !ids -> !pending
// CHECK-NEXT:  return %[[PENDING]]

// CHECK-LABEL: func.func @embeddings_wait(
// CHECK-SAME:    %[[PENDING:.*]]: !pending) -> (tensor<?x16xf32>, tensor<?x8xf32>)
// CHECK-NEXT:  %[[IDS:.*]] = neuroshard.resume %[[PENDING]] : !pending -> !ids
// CHECK-NEXT:  %[[USER:.*]] = neuroshard.lookup sum @user[%[[IDS]], "user"]
// CHECK-NEXT:  %[[ITEM:.*]] = neuroshard.lookup mean @item[%[[IDS]], "item"] padding_idx 0
// CHECK-NEXT:  return %[[USER]], %[[ITEM]]

// -----

// Packing stays in the entry. Ids made after the first use move up before it.

!a = !neuroshard.jagged<["a"], i64>

neuroshard.table private @t : 10 x 4 x f32

// CHECK-LABEL: func.func @late_ids(
// CHECK-SAME:    %[[A:.*]]: !ids, %[[VALUES:.*]]: tensor<?xi64>, %[[OFFSETS:.*]]: tensor<?xi64>)
// CHECK-NEXT:  %[[B:.*]] = neuroshard.from_keyed %[[VALUES]], %[[OFFSETS]]
// CHECK-NEXT:  %[[PENDING:.*]] = call @embeddings_start(%[[A]], %[[B]])
// CHECK-NEXT:  %[[ROWS:.*]]:2 = call @embeddings_wait(%[[PENDING]])
// CHECK-NEXT:  %[[SUM:.*]] = arith.addf %[[ROWS]]#0, %[[ROWS]]#0
// CHECK-NEXT:  return %[[SUM]], %[[ROWS]]#1
func.func @late_ids(%a: !a, %values: tensor<?xi64>, %offsets: tensor<?xi64>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%a, "a"] : !a -> tensor<?x4xf32>
  %sum = arith.addf %0, %0 : tensor<?x4xf32>
  %b = neuroshard.from_keyed %values, %offsets : tensor<?xi64>, tensor<?xi64> -> !a
  %1 = neuroshard.lookup sum @t[%b, "a"] : !a -> tensor<?x4xf32>
  return %sum, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

// So do ops with a region.

!a = !neuroshard.jagged<["a"], i64>

neuroshard.table private @t : 10 x 4 x f32

// CHECK-LABEL: func.func @late_region(
// CHECK:         %[[B:.*]] = neuroshard.pack
// CHECK-NEXT:    call @embeddings_start(%{{.*}}, %[[B]])
// CHECK-NEXT:    %[[ROWS:.*]]:2 = call @embeddings_wait
// CHECK-NEXT:    arith.addf %[[ROWS]]#0, %[[ROWS]]#0
func.func @late_region(%a: !a, %values: tensor<?xi64>, %bags: index, %size: i64) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%a, "a"] : !a -> tensor<?x4xf32>
  %sum = arith.addf %0, %0 : tensor<?x4xf32>
  %step = arith.index_cast %size : i64 to index
  %offsets = tensor.generate %bags {
  ^bb0(%bag: index):
    %offset = arith.muli %bag, %step : index
    %i = arith.index_cast %offset : index to i64
    tensor.yield %i : i64
  } : tensor<?xi64>
  %b = neuroshard.pack ids(%values : tensor<?xi64>) offsets(%offsets : tensor<?xi64>) : !a
  %1 = neuroshard.lookup sum @t[%b, "a"] : !a -> tensor<?x4xf32>
  return %sum, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}
