// The entry that is named stays, the other functions with lookups go, unless they are called.
// RUN: neuroshard-opt %s --neuroshard-keep-entry=entry=two | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-keep-entry | FileCheck %s --check-prefix=ALL
// RUN: not neuroshard-opt %s --neuroshard-keep-entry=entry=caller 2>&1 | FileCheck %s --check-prefix=CALLED
// RUN: not neuroshard-opt %s --neuroshard-keep-entry=entry=none 2>&1 | FileCheck %s --check-prefix=NONE

// CHECK-NOT: @one
// CHECK: func.func @two
// CHECK: func.func @helper
// CHECK: func.func @caller
// ALL: func.func @one
// ALL: func.func @two
// CALLED: error: '@two' has lookups and is not the entry '@caller', but is used by what stays; inline it first: --inline
// CALLED: note: it is used here
// NONE: error: the module has no function '@none' with a body (option 'entry')

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
func.func @one(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
func.func @two(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
func.func @helper(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
  return %x : tensor<?x4xf32>
}
func.func @caller(%ids: !ids) -> tensor<?x4xf32> {
  %0 = call @two(%ids) : (!ids) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
