// A plan for mode inference needs room for weights and no optimizer states, and the module keeps the mode.
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=2xCPU@1100MiB" 2>&1 | FileCheck %s --check-prefix=TRAINING
// TRAINING: error: no plan
// RUN: neuroshard-opt %s --neuroshard-plan="topology=2xCPU@1100MiB mode=inference" > %t.mlir
// RUN: FileCheck %s --check-prefix=INFERENCE < %t.mlir
// INFERENCE: neuroshard.planning = {{.*}}mode = "inference"
// INFERENCE: neuroshard.table {{.*}}optimizer = #neuroshard.optimizer<adam>
// INFERENCE: neuroshard.shard {{.*}} of @user rows [0, 1000000) cols [0, 128)
// The mode of the module is that of a later plan, and of checks.
// RUN: neuroshard-opt %t.mlir --neuroshard-plan --neuroshard-verify-planned | FileCheck %s --check-prefix=INFERENCE
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=2xCPU mode=serving" 2>&1 | FileCheck %s --check-prefix=MODE --implicit-check-not=error:
// MODE: error: option 'mode' must be training or inference, got: 'serving'
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @user : 1000000 x 128 x f32 {optimizer = #neuroshard.optimizer<adam>}
  func.func @forward(%ids: !ids) -> tensor<?x128xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x128xf32>
    return %u : tensor<?x128xf32>
  }
}
