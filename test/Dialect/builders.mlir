// What the short builders of the dialect make.
// RUN: neuroshard-test-opt %s --neuroshard-test-build-lookup | FileCheck %s

// CHECK:      neuroshard.table private @user : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
// CHECK-NEXT: neuroshard.table private @item : 50 x 8 x f16
// CHECK-NEXT: func.func @forward(%[[IDS:.*]]: tensor<?xi32>, %[[OFFSETS:.*]]: tensor<?xi64>, %[[WEIGHTS:.*]]: tensor<?xf32>)
// CHECK-NEXT:   %[[PACK:.*]] = neuroshard.pack ids(%[[IDS]], %[[IDS]] : {{.*}}) offsets(%[[OFFSETS]], %[[OFFSETS]] : {{.*}}) : ![[PACKED:ids[0-9]*]]
// CHECK-NEXT:   %[[KEYED:.*]] = neuroshard.from_keyed %[[IDS]], %[[OFFSETS]] weights %[[WEIGHTS]] : {{.*}} -> ![[KEYEDIDS:ids[0-9]*]]
// CHECK-NEXT:   neuroshard.lookup mean @user[%[[PACK]], "user"] : ![[PACKED]] -> tensor<?x64xf32>
// CHECK-NEXT:   neuroshard.lookup sum @item[%[[KEYED]], "item"] weighted : ![[KEYEDIDS]] -> tensor<?x8xf32>
// CHECK-NEXT:   neuroshard.unpack %[[PACK]]["item"] : ![[PACKED]] -> tensor<?xi32>, tensor<?xi64>
// CHECK-NEXT:   neuroshard.unpack %[[KEYED]]["item"] : ![[KEYEDIDS]] -> tensor<?xi32>, tensor<?xi64>, tensor<?xf32>
module {}
