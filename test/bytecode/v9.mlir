// Bytecode that version 9 wrote, where the function that begins a step names its plan: v9.mlirbc was made of this file.
// Of a module with several plans, v8-plans.mlirbc, version 8 had the plan of a step in types alone, which is refused.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v9.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error
// RUN: not neuroshard-opt-raw %S/v8-plans.mlirbc 2>&1 | FileCheck %s --check-prefix=PLANS

// PLANS: 'neuroshard.suspend' op has values that a plan distributes; bytecode before version 9 is read where the module has one plan, got: 2

!ids = !neuroshard.jagged<["a"], i64>
!b = !neuroshard.dist<!ids, batch>
!pending = !neuroshard.pending<!b>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "CPU">]
  levels [#neuroshard.level<"n", groups = [1], bandwidth = 1.0>]
// CHECK: neuroshard.plan @first
neuroshard.plan @first on @cluster semantics exact {
}
// CHECK: neuroshard.plan @second
neuroshard.plan @second on @cluster semantics exact {
}
// CHECK: func.func @start({{.*}}) -> !pending attributes {neuroshard.plan = @second}
func.func @start(%ids: !ids) -> !pending attributes {neuroshard.plan = @second} {
  // CHECK: neuroshard.scatter_batch {{.*}} : !ids -> !batch_ids
  %b = neuroshard.scatter_batch %ids : !ids -> !b
  %p = neuroshard.suspend %b : !b -> !pending
  return %p : !pending
}
