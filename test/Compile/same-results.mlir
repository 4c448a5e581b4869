// A model may return a tensor twice, and its arguments: the caller frees each.

// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-opt %s --neuroshard-plan=topology=2xCPU -o %t/planned.mlir
// RUN: neuroshard-compile %t/planned.mlir --reference -o %t/artifact
// RUN: neuroshard-run %t/artifact --batch 64 --steps 2 | FileCheck %s

// CHECK: largest difference 0 {{.*}} 0 of 4096 values differ
!ids = !neuroshard.jagged<["user"], i64>
module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @user : 1000 x 16 x f32
  func.func @forward(%dense: tensor<?x16xf32>, %ids: !ids)
      -> (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
    return %u, %dense, %u, %dense : tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  }
}
