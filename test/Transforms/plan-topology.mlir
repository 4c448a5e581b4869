// A module without devices gets those of the option, and so the plan is a plan for them.
// RUN: neuroshard-opt %s --neuroshard-plan="topology=2x8xA100-40GB batch=64" | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-plan="topology=8+4xA100-40GB batch=64" | FileCheck %s --check-prefix=UNEQUAL

// CHECK:      module attributes {neuroshard.batch = 64 : i64}
// CHECK-NEXT: neuroshard.topology @cluster devices [#neuroshard.devices<8 x "A100-40GB">, #neuroshard.devices<8 x "A100-40GB", host = 1>]
// CHECK-SAME:   groups = [16]{{.*}}groups = [8, 8]
// CHECK:      neuroshard.plan @plan on @cluster semantics exact

// UNEQUAL:      neuroshard.topology @cluster devices [#neuroshard.devices<8 x "A100-40GB">, #neuroshard.devices<4 x "A100-40GB", host = 1>]
// UNEQUAL-SAME:   groups = [12]{{.*}}groups = [8, 4]

neuroshard.table private @a : 100 x 8 x f32
