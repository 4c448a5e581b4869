// What --mlir-pass-pipeline-crash-reproducer writes for a failed pass, a failed pipeline and a crash
// runs again, and ends as before.

// RUN: not neuroshard-opt-raw %s --neuroshard-plan="topology=2xCPU@1GiB algorithm=size tiers=hbm deadline-s=20 wire-types=f32,bf16" --mlir-pass-pipeline-crash-reproducer=%t.plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=PLAN
// RUN: FileCheck %s --check-prefix=FILE --input-file=%t.plan
// RUN: not neuroshard-opt-raw --run-reproducer %t.plan -o /dev/null 2>&1 | FileCheck %s --check-prefix=SAME
// PLAN: error: no plan: device memory:
// PLAN: note: Pipeline failed while executing [`Plan` on 'builtin.module' operation]: reproducer generated at `{{.*}}.plan`
// SAME: error: no plan: device memory:
// FILE: neuroshard.table private @large
// FILE: pipeline: "builtin.module(neuroshard-plan{algorithm=size {{.*}}topology=2xCPU@1GiB wire-type= wire-types=f32,bf16})"

// RUN: not neuroshard-opt-raw %s --neuroshard-to-partitioned="training=true topology=2xCPU@128GiB" --mlir-pass-pipeline-crash-reproducer=%t.pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: not neuroshard-opt-raw --run-reproducer %t.pipeline -o /dev/null 2>&1 | FileCheck %s --check-prefix=PIPELINE
// PIPELINE: error: {{.*}}optimizer

// RUN: neuroshard-opt %s --neuroshard-plan=topology=2xCPU@128GiB -o %t.planned
// RUN: not neuroshard-test-opt %t.planned --neuroshard-test-fault=kind=mean-beside-unpooled --mlir-pass-pipeline-crash-reproducer=%t.crash -o /dev/null 2>&1 | FileCheck %s --check-prefix=CRASH
// RUN: not --crash neuroshard-test-opt --run-reproducer %t.crash -o /dev/null 2>&1 | FileCheck %s --check-prefix=CRASH
// CRASH: fault: mean beside unpooled

// Passes say what they did only where LLVM was built to count; the option works with all.
// RUN: neuroshard-opt-raw %s --neuroshard-plan=topology=2xCPU@128GiB --mlir-pass-statistics -o /dev/null 2>&1 | FileCheck %s --check-prefix=STATISTICS
// STATISTICS: Pass statistics report

!ids = !neuroshard.jagged<["a", "b"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @large : 100000000 x 64 x f32
  neuroshard.table private @small : 100 x 8 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x8xf32>) {
    %a = neuroshard.lookup mean @large[%ids, "a"] : !ids -> tensor<?x64xf32>
    %b = neuroshard.lookup unpooled @small[%ids, "b"] : !ids -> tensor<?x8xf32>
    return %a, %b : tensor<?x64xf32>, tensor<?x8xf32>
  }
}
