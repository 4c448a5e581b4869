// An error about the module has its line, not its text.
// RUN: not neuroshard-opt %s --pass-pipeline="builtin.module(neuroshard-to-partitioned{topology=2xCPU},convert-neuroshard-to-runtime{program=other})" 2>&1 | FileCheck %s --implicit-check-not="see current operation"
// CHECK: module-errors.mlir:[[#@LINE+3]]:1: error: the module has no device program 'other'; 'program' must be one of @program0

!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @user : 100 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x4xf32>
    return %u : tensor<?x4xf32>
  }
}
