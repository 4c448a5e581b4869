// Bytecode that version 8 wrote, with row-wise Adagrad with counter and the settings of its own:
// v8.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v8.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: neuroshard.table @counted {{.*}}#neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.000000e+00, adjustment_iter = 1.000000e+01, adjustment_ub = 5.000000e-01>
neuroshard.table @counted : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.0, adjustment_iter = 10.0, adjustment_ub = 0.5>}
// CHECK: neuroshard.table @adagradw {{.*}}#neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 5.000000e-01, weight_decay_mode = adagradw>
neuroshard.table @adagradw : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 0.5, weight_decay_mode = adagradw>}
