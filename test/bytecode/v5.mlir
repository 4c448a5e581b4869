// Bytecode that version 5 wrote, with more optimizers and modes of weight decay: v5.mlirbc was made
// of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v5.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: neuroshard.table @momentum {{.*}}#neuroshard.optimizer<momentum, beta1 = 8.000000e-01>
neuroshard.table @momentum : 100 x 16 x f32
  {optimizer = #neuroshard.optimizer<momentum, beta1 = 8.000000e-01>}
// CHECK: neuroshard.table @adamw {{.*}}#neuroshard.optimizer<adamw, weight_decay = 1.000000e-02>
neuroshard.table @adamw : 50 x 8 x f16
  {optimizer = #neuroshard.optimizer<adamw, weight_decay = 1.000000e-02>}
// CHECK: neuroshard.table @partial {{.*}}#neuroshard.optimizer<partial_rowwise_adam, weight_decay = 1.000000e-02, weight_decay_mode = l2>
neuroshard.table @partial : 50 x 8 x bf16
  {optimizer = #neuroshard.optimizer<partial_rowwise_adam, weight_decay = 1.000000e-02,
                                     weight_decay_mode = l2>}
