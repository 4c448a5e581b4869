// --entry chooses among several functions with lookups: it alone is planned for and compiled.
// RUN: rm -rf %t && mkdir %t
// RUN: not neuroshard-compile %s --topology 2xCPU -o %t/a 2>&1 | FileCheck %s --check-prefix=ADVICE
// ADVICE: error: '@two' and '@one' both have lookups; name the entry function with the option 'entry'
// RUN: neuroshard-compile %s --topology 2xCPU --entry two --emit-ir -o %t/two
// RUN: FileCheck %s --check-prefix=TWO < %t/two/ir/2-planned.mlir
// RUN: FileCheck %s --check-prefix=MANIFEST < %t/two/manifest.json
// TWO-NOT: @one(
// TWO: func.func @two(
// MANIFEST-NOT: "one"
// MANIFEST: "two"
// RUN: neuroshard-opt %s --neuroshard-to-partitioned="topology=2xCPU entry=one" | FileCheck %s --check-prefix=ONE
// ONE: func.func @one(
// ONE-NOT: @two(

!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 100 x 8 x f32
  func.func @one(%ids: !ids) -> tensor<?x8xf32> {
    %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
  func.func @two(%ids: !ids) -> tensor<?x8xf32> {
    %0 = neuroshard.lookup mean @t[%ids, "a"] : !ids -> tensor<?x8xf32>
    return %0 : tensor<?x8xf32>
  }
}
