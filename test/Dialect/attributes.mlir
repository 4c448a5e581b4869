// Attributes print as they parse, what is default is not printed, and names with
// quotes, newlines and other characters survive.
// RUN: neuroshard-dialect-opt %s | FileCheck %s

module attributes {neuroshard.batch = 128 : i64} {
// CHECK: test.optimizers = [
// CHECK-SAME: #neuroshard.optimizer<sgd>
// CHECK-SAME: #neuroshard.optimizer<rowwise_adagrad, eps = 1.000000e-10, initial_accumulator = 1.000000e-01>
// CHECK-SAME: #neuroshard.optimizer<adam, beta1 = 8.000000e-01, beta2 = 9.000000e-01, weight_decay = 5.000000e-01>
// CHECK-SAME: #neuroshard.optimizer<adagrad>
// CHECK-SAME: #neuroshard.optimizer<momentum, beta1 = 5.000000e-01>
// CHECK-SAME: #neuroshard.optimizer<adamw, weight_decay = 5.000000e-01>
// CHECK-SAME: #neuroshard.optimizer<adamw, weight_decay_mode = decoupled>
// CHECK-SAME: #neuroshard.optimizer<partial_rowwise_adam, weight_decay_mode = l2>
// CHECK-SAME: #neuroshard.optimizer<sgd, weight_decay = 5.000000e-01, weight_decay_mode = decoupled>
// CHECK-SAME: #neuroshard.optimizer<rowwise_rmsprop, beta2 = 8.750000e-01>
// CHECK-SAME: #neuroshard.optimizer<ftrl, eps = 1.000000e+00, l1_penalty = 5.000000e-01, l2_penalty = 2.500000e-01>
// CHECK-SAME: #neuroshard.optimizer<lars_sgd, weight_decay = 5.000000e-01, eta = 2.500000e-01>
// CHECK-SAME: #neuroshard.optimizer<partial_rowwise_lamb, eps = 5.000000e-01>
// CHECK-SAME: #neuroshard.optimizer<sgd, max_gradient = 1.000000e+00>
// CHECK-SAME: #neuroshard.optimizer<adam, beta1 = 5.000000e-01, stochastic_rounding>
// CHECK-SAME: #neuroshard.optimizer<momentum, stochastic_rounding, catch_up>
// CHECK-SAME: #neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 5.000000e-01, weight_decay_mode = adagradw>
// CHECK-SAME: #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = 4.000000e+00, adjustment_iter = 1.000000e+01, adjustment_ub = 5.000000e-01>
module @a attributes {test.optimizers = [
  #neuroshard.optimizer<sgd, weight_decay = 0.0>,
  #neuroshard.optimizer<rowwise_adagrad, initial_accumulator = 0.1, eps = 1.0e-10>,
  #neuroshard.optimizer<adam, beta1 = 0.8, beta2 = 0.9, weight_decay = 0.5>,
  #neuroshard.optimizer<adagrad>,
  #neuroshard.optimizer<momentum, beta1 = 0.5>,
  #neuroshard.optimizer<adamw, weight_decay_mode = default, weight_decay = 0.5>,
  #neuroshard.optimizer<adamw, weight_decay_mode = decoupled>,
  #neuroshard.optimizer<partial_rowwise_adam, weight_decay_mode = l2>,
  #neuroshard.optimizer<sgd, weight_decay_mode = decoupled, weight_decay = 0.5>,
  #neuroshard.optimizer<rowwise_rmsprop, beta2 = 0.875>,
  #neuroshard.optimizer<ftrl, l2_penalty = 0.25, eps = 1.0, l1_penalty = 0.5>,
  #neuroshard.optimizer<lars_sgd, eta = 0.25, weight_decay = 0.5>,
  #neuroshard.optimizer<partial_rowwise_lamb, eps = 0.5>,
  #neuroshard.optimizer<sgd, max_gradient = 1.0>,
  #neuroshard.optimizer<adam, stochastic_rounding, beta1 = 0.5>,
  #neuroshard.optimizer<momentum, catch_up, stochastic_rounding>,
  #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = -1.0, weight_decay_mode = adagradw, weight_decay = 0.5>,
  #neuroshard.optimizer<rowwise_adagrad_with_counter, adjustment_ub = 0.5, adjustment_iter = 10.0, counter_halflife = 4.0>]} {}

// CHECK: #neuroshard.feature<mean = 2.000000e+00, p99 = 9.000000e+00, presence = 5.000000e-01, batch = 64, weight_gradient>
// CHECK-SAME: #neuroshard.feature<mean = 1.000000e+00>
module @b attributes {test.features = [
  #neuroshard.feature<mean = 2.0, p99 = 9.0, presence = 0.5, batch = 64, weight_gradient>,
  #neuroshard.feature<mean = 1.0, presence = 1.0>]} {}

// CHECK: #neuroshard.access<batch = 1024, reuse = [5.000000e-01, 5.000000e-01, 0.000000e+00, {{.*}}], row_mass = [1.000000e-02, 4.000000e-01, 1.000000e-01, 8.000000e-01]>
neuroshard.table @t : 10 x 4 x f32 {access = #neuroshard.access<batch = 1024,
  reuse = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
  row_mass = [0.01, 0.4, 0.1, 0.8]>}

// CHECK: #neuroshard.access<batch = 8, reuse = [1.000000e+00, {{.*}}], row_mass = [1.000000e-01, 8.000000e-01], rows_by_use>
neuroshard.table @ordered : 10 x 4 x f32 {access = #neuroshard.access<batch = 8,
  reuse = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
  rows_by_use, row_mass = [0.1, 0.8]>}

// CHECK: #neuroshard.lookup<mean @t["with \22quotes\22 and \0A"] padding_idx = 7>
// CHECK-SAME: #neuroshard.lookup<sum @"odd name"["\E4"] weighted padding_idx = 0>
module @c attributes {test.lookups = [
  #neuroshard.lookup<mean @t["with \"quotes\" and \n"] padding_idx = 7>,
  #neuroshard.lookup<sum @"odd name"["\E4"] weighted padding_idx = 0>]} {}

// CHECK: #neuroshard.devices<4 x "H200", host = 2, memory = 1000>
// CHECK: #neuroshard.devices<1 x "CPU", dense_reserve = 0, fragmentation_reserve = 5, communicator_reserve = 7>
// CHECK-SAME: #neuroshard.level<"with \22quotes\22", groups = [2, 1], bandwidth = 2.200000e+01, latency = 0.000000e+00>
// CHECK-SAME: #neuroshard.level<"card", groups = [4], bandwidth = 2.000000e+00, latency = 0.000000e+00, group_bandwidth = 3.000000e+00>
module @d attributes {test.values = [
  #neuroshard.devices<4 x "H200", memory = 1000, host = 2>,
  #neuroshard.devices<1 x "CPU", communicator_reserve = 7, fragmentation_reserve = 5, dense_reserve = 0>,
  #neuroshard.level<"with \"quotes\"", groups = [2, 1], bandwidth = 22.0>,
  #neuroshard.level<"card", groups = [4], group_bandwidth = 3.0, bandwidth = 2.0>]} {}

// CHECK: test.types = [
// CHECK-SAME: !ids
// CHECK-SAME: !neuroshard.pending, !neuroshard.context, !neuroshard.rows, !neuroshard.device, !neuroshard.routed, !neuroshard.partials
// CHECK-SAME: !neuroshard.dist<tensor<4x2xf16>, replica>
module @e attributes {test.types = [
  !neuroshard.jagged<["\"", "b"], i32, weighted>, !neuroshard.pending, !neuroshard.context,
  !neuroshard.rows, !neuroshard.device, !neuroshard.routed, !neuroshard.partials,
  !neuroshard.dist<tensor<4x2xf16>, replica>]} {}
}
