// --crash-reproducer: whichever pass of a compilation fails, neuroshard-opt fails as it did.

// RUN: rm -rf %t && split-file %s %t

// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU@1MiB --crash-reproducer %t/plan.repro 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: not neuroshard-opt-raw --run-reproducer %t/plan.repro -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: error: no plan: device memory:
// What was not given is no number.
// RUN: FileCheck %s --check-prefix=GIVEN --input-file=%t/plan.repro
// GIVEN: neuroshard-plan{{.*}} batch= {{.*}}topology=2xCPU@1MiB

// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --training --crash-reproducer %t/shard.repro 2>&1 | FileCheck %s --check-prefix=SHARD
// RUN: not neuroshard-opt-raw --run-reproducer %t/shard.repro -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARD
// SHARD: error: {{.*}}optimizer

// RUN: not neuroshard-compile %t/native.mlir -o %t/a --topology 1xCPU --crash-reproducer %t/native.repro 2>&1 | FileCheck %s --check-prefix=NATIVE
// RUN: not neuroshard-opt-raw --run-reproducer %t/native.repro -o /dev/null 2>&1 | FileCheck %s --check-prefix=NATIVE
// NATIVE: error: op was not bufferized

// A file that cannot be written is said beside the error; without a failure there is no file.
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU@1MiB --crash-reproducer %t/no/where 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: no plan: device memory:
// NOWHERE: cannot open output file '{{.*}}where': No such file or directory
// RUN: neuroshard-compile %t/model.mlir -o %t/a --topology 1xCPU --crash-reproducer %t/none
// RUN: not ls %t/none

// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topologi 1xCPU 2>&1 | FileCheck %s --check-prefix=MEANT
// MEANT: Unknown: '--topologi'; did you mean '--topology'?

//--- model.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @t : 100000 x 8 x f32
  func.func @forward(%ids: !neuroshard.jagged<["f"], i64>) -> tensor<?x8xf32> {
    %r = neuroshard.lookup sum @t[%ids, "f"] : !neuroshard.jagged<["f"], i64> -> tensor<?x8xf32>
    return %r : tensor<?x8xf32>
  }
}

//--- native.mlir
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @t : 100 x 8 x f32
  func.func @forward(%ids: !neuroshard.jagged<["f"], i64>) -> tensor<?x8xf32> {
    %r = neuroshard.lookup sum @t[%ids, "f"] : !neuroshard.jagged<["f"], i64> -> tensor<?x8xf32>
    %s = tosa.tanh %r : (tensor<?x8xf32>) -> tensor<?x8xf32>
    return %s : tensor<?x8xf32>
  }
}
