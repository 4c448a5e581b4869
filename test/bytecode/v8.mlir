// Bytecode that version 8 wrote, with row-wise Adagrad with counter and the settings of its own, and copies that drift:
// v8.mlirbc was made of this file.
// RUN: neuroshard-opt-raw %s > %t.text
// RUN: neuroshard-opt-raw %S/v8.mlirbc > %t.bytecode
// RUN: diff %t.text %t.bytecode
// RUN: FileCheck %s --input-file=%t.bytecode --implicit-check-not=error

// CHECK: neuroshard.table @counted {{.*}}#neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.000000e+00, adjustment_iter = 1.000000e+01, adjustment_ub = 5.000000e-01>
neuroshard.table @counted : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.0, adjustment_iter = 10.0, adjustment_ub = 0.5>}
// CHECK: neuroshard.table @adagradw {{.*}}#neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 5.000000e-01, weight_decay_mode = adagradw>
neuroshard.table @adagradw : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 0.5, weight_decay_mode = adagradw>}

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
  levels [#neuroshard.level<"n", groups = [4], bandwidth = 1.0>]
neuroshard.table @user : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
neuroshard.table @item : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  // CHECK: neuroshard.shard "user_0" of @user rows [0, 60) cols [0, 16) on [0, 2] sync_every 100
  neuroshard.shard "user_0" of @user rows [0, 60) cols [0, 16) on [0, 2] sync_every 100
  neuroshard.shard "user_1" of @user rows [60, 100) cols [0, 16) on [1, 3] sync_every 100
  // CHECK: neuroshard.shard "item" of @item rows [0, 100) cols [0, 16) on [0, 1, 2, 3]{{$}}
  neuroshard.shard "item" of @item rows [0, 100) cols [0, 16) on [0, 1, 2, 3]
}
