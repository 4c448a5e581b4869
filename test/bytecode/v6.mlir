// Bytecode that version 6 wrote, with FTRL, its penalties, a bound of gradients and
// stochastic rounding: v6.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v6.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: neuroshard.table @ftrl {{.*}}#neuroshard.optimizer<ftrl, eps = 1.000000e+00, l1_penalty = 5.000000e-01, l2_penalty = 2.500000e-01>
neuroshard.table @ftrl : 100 x 16 x f32
  {optimizer = #neuroshard.optimizer<ftrl, eps = 1.0, l1_penalty = 0.5, l2_penalty = 0.25>}
// CHECK: neuroshard.table @clipped {{.*}}#neuroshard.optimizer<sgd, max_gradient = 1.000000e+00>
neuroshard.table @clipped : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<sgd, max_gradient = 1.0>}
// CHECK: neuroshard.table @rounded {{.*}}#neuroshard.optimizer<sgd, stochastic_rounding>
neuroshard.table @rounded : 100 x 16 x bf16 {optimizer = #neuroshard.optimizer<sgd, stochastic_rounding>}
