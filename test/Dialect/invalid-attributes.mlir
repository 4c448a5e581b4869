// What attributes and types refuse.
// RUN: neuroshard-dialect-opt-raw %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error@below {{'eps' must be finite and not negative}}
"x"() {a = #neuroshard.optimizer<adagrad, eps = -1.0>} : () -> ()

// -----

// expected-error@below {{'initial_accumulator' must be finite and not negative}}
"x"() {a = #neuroshard.optimizer<adagrad, initial_accumulator = -1.0>} : () -> ()

// -----

// expected-error@below {{'weight_decay' must be finite and not negative}}
"x"() {a = #neuroshard.optimizer<adagrad, weight_decay = 0x7FF0000000000000>} : () -> ()

// -----

// expected-error@below {{'beta1' must be in [0, 1)}}
"x"() {a = #neuroshard.optimizer<adam, beta1 = 1.0>} : () -> ()

// -----

// expected-error@below {{'beta2' must be in [0, 1)}}
"x"() {a = #neuroshard.optimizer<adam, beta2 = 0x7FF8000000000000>} : () -> ()

// -----

// Not even the default of another optimizer's setting.
// expected-error@below {{sgd has no beta2; it has weight_decay, max_gradient, weight_decay_mode, stochastic_rounding and catch_up}}
"x"() {a = #neuroshard.optimizer<sgd, beta2 = 0.999>} : () -> ()

// -----

// expected-error@below {{momentum has no initial_accumulator; it has beta1, weight_decay,}}
"x"() {a = #neuroshard.optimizer<momentum, initial_accumulator = 0.1>} : () -> ()

// -----

// expected-error@below {{'eps' given twice}}
"x"() {a = #neuroshard.optimizer<adagrad, eps = 1.0, eps = 2.0>} : () -> ()

// -----

// expected-error@below {{unknown key 'momentum', expected one of: eps, beta1, beta2, initial_accumulator, weight_decay, l1_penalty, l2_penalty, eta, counter_halflife, adjustment_iter, adjustment_ub, max_gradient, weight_decay_mode, stochastic_rounding, catch_up}}
"x"() {a = #neuroshard.optimizer<sgd, momentum = 1.0>} : () -> ()

// -----

// expected-error@below {{unknown optimizer 'adamax', expected one of: sgd, adagrad, rowwise_adagrad, adam, momentum, adamw, partial_rowwise_adam, rowwise_rmsprop, ftrl, lars_sgd, lamb, partial_rowwise_lamb, rowwise_adagrad_with_counter}}
"x"() {a = #neuroshard.optimizer<adamax>} : () -> ()

// -----

// expected-error@below {{'weight_decay_mode': ftrl has l2 weight decay alone, got: decoupled}}
"x"() {a = #neuroshard.optimizer<ftrl, weight_decay_mode = decoupled>} : () -> ()

// -----

// expected-error@below {{'l1_penalty' must be}}
"x"() {a = #neuroshard.optimizer<ftrl, l1_penalty = -1.0>} : () -> ()

// -----

// expected-error@below {{'eta' must be}}
"x"() {a = #neuroshard.optimizer<lars_sgd, eta = -1.0>} : () -> ()

// -----

// expected-error@below {{lamb has no eta; it has eps, beta1, beta2, weight_decay, max_gradient, weight_decay_mode and stochastic_rounding}}
"x"() {a = #neuroshard.optimizer<lamb, eta = 1.0>} : () -> ()

// -----

// expected-error@below {{'weight_decay_mode': lamb has decoupled weight decay alone, got: l2}}
"x"() {a = #neuroshard.optimizer<lamb, weight_decay_mode = l2>} : () -> ()

// -----

// expected-error@below {{'weight_decay_mode': adagradw is of rowwise_adagrad_with_counter alone, got: adagrad}}
"x"() {a = #neuroshard.optimizer<adagrad, weight_decay_mode = adagradw>} : () -> ()

// -----

// expected-error@below {{'counter_halflife': must be above 0 under l2 and decoupled weight decay, which takes counter_halflife / row_counter of it, got: -1}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad_with_counter, weight_decay = 0.5>} : () -> ()

// -----

// expected-error@below {{'counter_halflife': must be a number of steps, 0,}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad_with_counter, counter_halflife = -3.0>} : () -> ()

// -----

// expected-error@below {{rowwise_adagrad has no counter_halflife; it has eps, initial_accumulator, weight_decay, max_gradient, weight_decay_mode and stochastic_rounding}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad, counter_halflife = 4.0>} : () -> ()

// -----

// expected-error@below {{'adjustment_iter': must be at least -1, got: -2}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad_with_counter, adjustment_iter = -2.0>} : () -> ()

// -----

// expected-error@below {{'max_gradient' must be}}
"x"() {a = #neuroshard.optimizer<sgd, max_gradient = -1.0>} : () -> ()

// -----

// expected-error@below {{'neuroshard.table' op 'stochastic_rounding': weights of f32 are not rounded; it is for f16 and bf16}}
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd, stochastic_rounding>}

// -----

// expected-error@below {{'catch_up': is of sgd, adagrad, adam, momentum and adamw, whose steps without a gradient need nothing but the row's own elements; got: rowwise_adagrad}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad, weight_decay = 0.5, catch_up>} : () -> ()

// -----

// expected-error@below {{'catch_up': changes nothing with adagrad without weight_decay}}
"x"() {a = #neuroshard.optimizer<adagrad, catch_up>} : () -> ()

// -----

// expected-error@below {{adagrad has no l2_penalty; it has eps,}}
"x"() {a = #neuroshard.optimizer<adagrad, l2_penalty = 1.0>} : () -> ()

// -----

// expected-error@below {{'weight_decay_mode' must be default, l2, decoupled or adagradw, got: coupled}}
"x"() {a = #neuroshard.optimizer<adam, weight_decay_mode = coupled>} : () -> ()

// -----

// expected-error@below {{'weight_decay_mode': adamw has decoupled weight decay alone, got: l2}}
"x"() {a = #neuroshard.optimizer<adamw, weight_decay_mode = l2>} : () -> ()

// -----

// expected-error@below {{'batch' must be positive, got: 0}}
"x"() {a = #neuroshard.access<reuse = [1.0]>} : () -> ()

// -----

// expected-error@below {{'reuse' must have 17 shares, got: 2}}
"x"() {a = #neuroshard.access<batch = 1, reuse = [0.5, 0.5]>} : () -> ()

// -----

// expected-error@below {{'reuse' shares must be in [0, 1]}}
"x"() {a = #neuroshard.access<batch = 1, reuse = [2.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]>} : () -> ()

// -----

// expected-error@below {{'reuse' shares must sum to 1, got: }}
"x"() {a = #neuroshard.access<batch = 1, reuse = [0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]>} : () -> ()

// -----

// expected-error@below {{'rows_by_use' needs 'row_mass', the lookups that the first rows get}}
"x"() {a = #neuroshard.access<batch = 1, reuse = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], rows_by_use>} : () -> ()

// -----

// expected-error@below {{'row_mass' must be pairs (row share, lookup share)}}
"x"() {a = #neuroshard.access<batch = 1, reuse = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], row_mass = [0.1]>} : () -> ()

// -----

// expected-error@below {{'row_mass' points must ascend}}
"x"() {a = #neuroshard.access<batch = 1, reuse = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], row_mass = [0.2, 0.5, 0.1, 0.6]>} : () -> ()

// -----

// expected-error@below {{'mean' must be finite and not negative}}
"x"() {a = #neuroshard.feature<mean = -1.0>} : () -> ()

// -----

// expected-error@below {{'p99' must be finite and not negative}}
"x"() {a = #neuroshard.feature<mean = 1.0, p99 = -1.0>} : () -> ()

// -----

// expected-error@below {{'presence' must be in [0, 1]}}
"x"() {a = #neuroshard.feature<mean = 1.0, presence = 1.5>} : () -> ()

// -----

// expected-error@below {{'batch' must be positive, got: -3}}
"x"() {a = #neuroshard.feature<mean = 1.0, batch = -3>} : () -> ()

// -----

// expected-error@below {{number of devices must be in [1, 65536], got: 0}}
"x"() {a = #neuroshard.devices<0 x "H200">} : () -> ()

// -----

// expected-error@below {{number of devices must be in [1, 65536], got: 9000000000}}
"x"() {a = #neuroshard.devices<9000000000 x "H200">} : () -> ()

// -----

// expected-error@below {{device class must not be empty}}
"x"() {a = #neuroshard.devices<1 x "">} : () -> ()

// -----

// expected-error@below {{'host' must not be negative, got: -1}}
"x"() {a = #neuroshard.devices<1 x "H200", host = -1>} : () -> ()

// -----

// expected-error@below {{'memory' must be positive, got: 0}}
"x"() {a = #neuroshard.devices<1 x "H200", memory = 0>} : () -> ()

// -----

// expected-error@below {{'communicator_reserve' must not be negative, got: -1}}
"x"() {a = #neuroshard.devices<1 x "H200", communicator_reserve = -1>} : () -> ()

// -----

// expected-error@below {{level name must not be empty}}
"x"() {a = #neuroshard.level<"", groups = [1], bandwidth = 1.0>} : () -> ()

// -----

// expected-error@below {{'groups' must be positive sizes}}
"x"() {a = #neuroshard.level<"n", groups = [0], bandwidth = 1.0>} : () -> ()

// -----

// expected-error@below {{'bytes' must not be negative, got: -1}}
"x"() {a = #neuroshard.disk<bytes = -1>} : () -> ()

// -----

// expected-error@below {{'reads' must be finite and not negative}}
"x"() {a = #neuroshard.disk<reads = -1.0>} : () -> ()

// -----

// expected-error@below {{unknown key 'writes', expected one of: bytes, reads, bandwidth}}
"x"() {a = #neuroshard.disk<bytes = 1, writes = 2.0>} : () -> ()

// -----

// expected-error@below {{'bandwidth' must be finite and positive}}
"x"() {a = #neuroshard.level<"n", groups = [1]>} : () -> ()

// -----

// expected-error@below {{'latency' must be finite and not negative}}
"x"() {a = #neuroshard.level<"n", groups = [1], bandwidth = 1.0, latency = -1.0>} : () -> ()

// -----

// expected-error@below {{'group_bandwidth' must be finite and not negative}}
"x"() {a = #neuroshard.level<"n", groups = [1], bandwidth = 1.0, group_bandwidth = -1.0>} : () -> ()

// -----

// expected-error@below {{jagged type must have at least one feature}}
func.func private @f(!neuroshard.jagged<[], i64>)

// -----

// expected-error@below {{feature names must not be empty}}
func.func private @f(!neuroshard.jagged<[""], i64>)

// -----

func.func private @f(!neuroshard.jagged<["a",
    // expected-error@below {{feature names must be unique, got "a" twice}}
    "a"],
    i64>)

// -----

func.func private @f(!neuroshard.jagged<["a"],
    // expected-error@below {{ids must be i32 or i64, got: 'i16'}}
    i16
    >)

// -----

// expected-error@below {{only jagged ids, rows and ranked tensors can be distributed, got: 'i32'}}
func.func private @f(!neuroshard.dist<i32, batch>)

// -----

// expected-error@below {{attribute 'neuroshard.batch' must be a positive i64 on a module, got: 0 : i64}}
module attributes {neuroshard.batch = 0 : i64} {}

// -----

// expected-error@below {{unknown attribute 'neuroshard.bach'}}
module attributes {neuroshard.bach = 64 : i64} {}

// -----

// expected-error@below {{'adjustment_iter': must be a whole number of steps, got: 2.5}}
"x"() {a = #neuroshard.optimizer<rowwise_adagrad_with_counter, adjustment_iter = 2.5>} : () -> ()

// -----

// expected-error@below {{attribute 'neuroshard.plan' must be a plan's symbol, such as @plan, on a function, got: "plan"}}
func.func private @f() attributes {neuroshard.plan = "plan"}

// -----

// expected-error@below {{attribute 'neuroshard.plan' must be a plan's symbol, such as @plan, on a function, got: @plan}}
module attributes {neuroshard.plan = @plan} {}
