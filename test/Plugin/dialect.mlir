// With the dialect plugin alone the distribution's mlir-opt reads and writes every level, as
// text and as bytecode, and refuses what neuroshard-opt refuses, with the same words.

// DEFINE: %{load} = --load-dialect-plugin=%neuroshard_lib/libneuroshard_plugin.so
// DEFINE: %{levels} = %S/../Dialect
// RUN: mlir-opt %{load} %s | FileCheck %s
// RUN: mlir-opt %{load} %s --emit-bytecode | mlir-opt %{load} | FileCheck %s
// RUN: neuroshard-opt %s --emit-bytecode | mlir-opt %{load} | FileCheck %s
// RUN: mlir-opt %{load} %s --emit-bytecode | neuroshard-opt | FileCheck %s
// RUN: mlir-opt %{load} --verify-roundtrip %{levels}/logical.mlir | FileCheck %{levels}/logical.mlir
// RUN: mlir-opt %{load} --verify-roundtrip %{levels}/sharded.mlir | FileCheck %{levels}/sharded.mlir
// RUN: mlir-opt %{load} --verify-roundtrip %{levels}/partitioned.mlir | FileCheck %{levels}/partitioned.mlir
// RUN: mlir-opt %{load} --split-input-file --verify-diagnostics %{levels}/invalid-logical.mlir
// RUN: mlir-opt %{load} --split-input-file --verify-diagnostics %{levels}/invalid-plan.mlir
// RUN: mlir-opt %{load} --split-input-file --verify-diagnostics %{levels}/invalid-sharded.mlir
// RUN: mlir-opt %{load} --split-input-file --verify-diagnostics %{levels}/invalid-partitioned.mlir

// Without the plugin the dialect is unknown.
// RUN: not mlir-opt %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// UNKNOWN: created with unregistered dialect

// MLIR's own passes know the effects of our ops: of equal lookups one stays.
// RUN: mlir-opt %{load} %s --cse | FileCheck %s --check-prefix=CSE

// CHECK: !ids = !neuroshard.jagged<["user"], i64>
!ids = !neuroshard.jagged<["user"], i64>
// CHECK: neuroshard.table private @user : 1000 x 16 x f32
neuroshard.table private @user : 1000 x 16 x f32
// CHECK: func.func @forward(%[[IDS:.*]]: !ids)
// CSE:       func.func @forward
func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  // CHECK-COUNT-2: neuroshard.lookup sum @user[%[[IDS]], "user"] : !ids -> tensor<?x16xf32>
  // CSE-NEXT:    %[[U:.*]] = neuroshard.lookup
  // CSE-NEXT:    return %[[U]], %[[U]]
  %a = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
  %b = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x16xf32>
  return %a, %b : tensor<?x16xf32>, tensor<?x16xf32>
}
