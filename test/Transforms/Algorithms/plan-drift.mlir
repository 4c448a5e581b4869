// Copies of a table that may drift: the search makes them where they pay, says that they are not exact, and keeps
// them in the plan.
// RUN: neuroshard-opt %s --neuroshard-plan="cost-model=roofline" -o %t.mlir --remark-format=emitRemark \
// RUN:   --remarks-filter=neuroshard-plan 2> %t.remarks
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: neuroshard-opt %t.mlir --neuroshard-plan -o %t.again.mlir
// RUN: diff %t.mlir %t.again.mlir

// CHECK: neuroshard.shard {{.*}} of @user rows [0, 4000) {{.*}} on [{{.*}}, {{.*}}] sync_every 1000
// CHECK-NOT: sync_every
// REMARK: not exact (sync_every 1000): copies of 'user' apply the gradients of their own part of the batch and are averaged after every 1000 steps

!ids = !neuroshard.jagged<["user", "item"], i64>

module attributes {neuroshard.batch = 65536 : i64,
                   neuroshard.planning = {tables = [{table = @user, sync_every = 1000 : i64}]}} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<4 x "CPU">]
    levels [#neuroshard.level<"cluster", groups = [4], bandwidth = 0.01, latency = 100.0>,
            #neuroshard.level<"node", groups = [2, 2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.table private @user : 4000 x 64 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  neuroshard.table private @item : 100000 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x8xf32>) {
    %0 = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    %1 = neuroshard.lookup sum @item[%ids, "item"] : !ids -> tensor<?x8xf32>
    return %0, %1 : tensor<?x64xf32>, tensor<?x8xf32>
  }
}
