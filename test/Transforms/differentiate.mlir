// Training adds the update function and a context that the forward saves for it.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate | FileCheck %s

!ids = !neuroshard.jagged<["a", "b"], i64>
!weighted = !neuroshard.jagged<["q"], i32, weighted>

neuroshard.table private @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @u : 10 x 8 x f32 {optimizer = #neuroshard.optimizer<adam>}
neuroshard.table private @frozen : 10 x 2 x f32

// The entry does not need the context.
// CHECK-LABEL: func.func @forward(
// CHECK:         %[[PENDING:.*]] = call @embeddings_start
// CHECK-NEXT:    %[[ROWS:.*]]:5 = call @embeddings_wait(%[[PENDING]])
// CHECK-NEXT:    neuroshard.discard %[[ROWS]]#4 : !context
// CHECK-NEXT:    return %[[ROWS]]#0, %[[ROWS]]#1, %[[ROWS]]#2, %[[ROWS]]#3
func.func @forward(%ids: !ids, %q: !weighted)
    -> (tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x2xf32>, tensor<?x4xf16>) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  %1 = neuroshard.lookup mean @u[%ids, "b"] : !ids -> tensor<?x8xf32>
  %2 = neuroshard.lookup sum @frozen[%q, "q"] weighted : !weighted -> tensor<?x2xf32>
  %3 = neuroshard.lookup sum @t[%q, "q"] : !weighted -> tensor<?x4xf16>
  return %0, %1, %2, %3 : tensor<?x4xf32>, tensor<?x8xf32>, tensor<?x2xf32>, tensor<?x4xf16>
}

// CHECK-LABEL: func.func @embeddings_wait(
// CHECK-NEXT:    %[[IDS:.*]]:2 = neuroshard.resume
// CHECK:         %[[CONTEXT:.*]] = neuroshard.save %[[IDS]]#0, %[[IDS]]#1 : !ids, !ids1 -> !context
// CHECK-NEXT:    return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[CONTEXT]]

// Weights of the frozen table get gradients, from before the updates. A table
// has one update, with the gradients of all its lookups.
// CHECK-LABEL: func.func @embeddings_update(
// CHECK-SAME:    %[[CONTEXT:.*]]: !context, %[[G0:.*]]: tensor<?x4xf32>, %[[G1:.*]]: tensor<?x8xf32>, %[[G2:.*]]: tensor<?x2xf32>, %[[G3:.*]]: tensor<?x4xf16>, %[[LR:.*]]: f32, %[[STEP:.*]]: i64) -> tensor<?xf32>
// CHECK-NEXT:    %[[IDS:.*]]:2 = neuroshard.restore %[[CONTEXT]] : !context -> !ids, !ids1
// CHECK-NEXT:    %[[W:.*]] = neuroshard.weights_gradient %[[IDS]]#1 [#neuroshard.lookup<sum @frozen["q"] weighted>] gradients(%[[G2]])
// CHECK-NEXT:    neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<sum @t["q"]>] ids(%[[IDS]]#0, %[[IDS]]#1 : !ids, !ids1) gradients(%[[G0]], %[[G3]] : tensor<?x4xf32>, tensor<?x4xf16>) learning_rate %[[LR]] step %[[STEP]]
// CHECK-NEXT:    neuroshard.update @u [#neuroshard.lookup<mean @u["b"]>] ids(%[[IDS]]#0 : !ids) gradients(%[[G1]] : tensor<?x8xf32>)
// CHECK-NEXT:    return %[[W]] : tensor<?xf32>
