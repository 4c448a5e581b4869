// The manifest names the groups of the topology's innermost level if every device has a
// counterpart in every other group.

// RUN: rm -rf %t && split-file %s %t
// RUN: neuroshard-compile %t/model.mlir -o %t/a --topology 2x2xCPU
// RUN: FileCheck %s --check-prefix=EVEN --input-file=%t/a/manifest.json
// EVEN:      "groups": [
// EVEN-NEXT:  [
// EVEN-NEXT:   0,
// EVEN-NEXT:   1
// EVEN-NEXT:  ],
// EVEN-NEXT:  [
// EVEN-NEXT:   2,
// EVEN-NEXT:   3
// EVEN-NEXT:  ]
// EVEN-NEXT: ]

// RUN: neuroshard-compile %t/model.mlir -o %t/b --topology 2+1xCPU
// RUN: FileCheck %s --check-prefix=NONE --input-file=%t/b/manifest.json
// RUN: neuroshard-compile %t/model.mlir -o %t/c --topology 4xCPU
// RUN: FileCheck %s --check-prefix=NONE --input-file=%t/c/manifest.json
// NONE-NOT: "groups"

//--- model.mlir
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}
