// Bytecode that version 7 wrote, with optimizers that have trust ratios and LARS's factor of its own:
// v7.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v7.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: neuroshard.table @lars {{.*}}#neuroshard.optimizer<lars_sgd, eta = 5.000000e-01>
neuroshard.table @lars : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<lars_sgd, eta = 0.5>}
// CHECK: neuroshard.table @lamb {{.*}}#neuroshard.optimizer<lamb, weight_decay = 5.000000e-01>
neuroshard.table @lamb : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<lamb, weight_decay = 0.5>}
// CHECK: neuroshard.table @partial {{.*}}#neuroshard.optimizer<partial_rowwise_lamb>
neuroshard.table @partial : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<partial_rowwise_lamb>}
