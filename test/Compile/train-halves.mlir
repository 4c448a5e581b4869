// Lookups with results of f16 and bf16 are trained with gradients of their types, as the unsharded program is.
// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %s -o %t/artifact --topology 3xCPU --training --reference
// RUN: neuroshard-run %t/artifact --batch 11 --pooling 3 --train --steps 3 | FileCheck %s
// CHECK-COUNT-3: unsharded update

!ids = !neuroshard.jagged<["a", "b"], i64>
module attributes {neuroshard.batch = 11 : i64} {
  neuroshard.table private @a : 40 x 8 x f16 {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.table private @b : 40 x 8 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  func.func @forward(%ids: !ids) -> (tensor<?x8xf16>, tensor<?x8xbf16>) {
    %a = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x8xf16>
    %b = neuroshard.lookup mean @b[%ids, "b"] : !ids -> tensor<?x8xbf16>
    return %a, %b : tensor<?x8xf16>, tensor<?x8xbf16>
  }
}
