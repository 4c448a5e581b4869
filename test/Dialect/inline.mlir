// Functions with ops of the dialect inline.
// RUN: neuroshard-dialect-opt %s --inline | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}

// CHECK-LABEL: func.func @outer(
// CHECK-NEXT:    %[[ROWS:.*]] = neuroshard.lookup sum @t
// CHECK-NEXT:    neuroshard.update @t
// CHECK-NEXT:    return %[[ROWS]]
func.func @outer(%ids: !ids, %lr: f32, %step: i64) -> tensor<?x4xf32> {
  %0 = call @inner(%ids, %lr, %step) : (!ids, f32, i64) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// CHECK-NOT: @inner
func.func private @inner(%ids: !ids, %lr: f32, %step: i64) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>] ids(%ids : !ids)
    gradients(%0 : tensor<?x4xf32>) learning_rate %lr step %step
  return %0 : tensor<?x4xf32>
}
