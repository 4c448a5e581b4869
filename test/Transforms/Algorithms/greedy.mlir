// Whole tables in descending order of a key, each on the device with least of it. The keys are
// columns, rows x columns, columns x pooling, and that x log10(rows).
//
//         dim   size  lookup  size-lookup
//   @a     64  64000      64          192
//   @b      8 800000       8           40
//   @c     32    320     128          128
//   @d     16  80000      32          118

// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=dim" | FileCheck %s --check-prefix=DIM
// DIM: of @a {{.*}} on [0]
// DIM: of @b {{.*}} on [1]
// DIM: of @c {{.*}} on [1]
// DIM: of @d {{.*}} on [1]

// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=size" | FileCheck %s --check-prefix=SIZE
// SIZE: of @a {{.*}} on [1]
// SIZE: of @b {{.*}} on [0]
// SIZE: of @c {{.*}} on [1]
// SIZE: of @d {{.*}} on [1]

// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=lookup" | FileCheck %s --check-prefix=LOOKUP
// LOOKUP: of @a {{.*}} on [1]
// LOOKUP: of @b {{.*}} on [1]
// LOOKUP: of @c {{.*}} on [0]
// LOOKUP: of @d {{.*}} on [1]

// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=size-lookup" | FileCheck %s --check-prefix=BOTH
// BOTH: of @a {{.*}} on [0]
// BOTH: of @b {{.*}} on [0]
// BOTH: of @c {{.*}} on [1]
// BOTH: of @d {{.*}} on [1]

!ids = !neuroshard.jagged<["a", "b", "c", "d"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table private @a : 1000 x 64 x f32
  neuroshard.table private @b : 100000 x 8 x f32
  neuroshard.table private @c : 10 x 32 x f32
  neuroshard.table private @d : 5000 x 16 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x32xf32>, tensor<?x16xf32>) {
    %a = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x64xf32>
    %b = neuroshard.lookup sum @b[%ids, "b"] : !ids -> tensor<?x8xf32>
    %c = neuroshard.lookup sum @c[%ids, "c"] {stats = #neuroshard.feature<mean = 4.0>} : !ids -> tensor<?x32xf32>
    %d = neuroshard.lookup sum @d[%ids, "d"] {stats = #neuroshard.feature<mean = 2.0>} : !ids -> tensor<?x16xf32>
    return %a, %b, %c, %d : tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x32xf32>, tensor<?x16xf32>
  }
}
