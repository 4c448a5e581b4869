// What the ops of the logical level refuse.
// RUN: neuroshard-dialect-opt-raw %s --split-input-file --verify-diagnostics

// expected-error@below {{must have at least one device}}
neuroshard.topology @cluster devices []
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]

// -----

// expected-error@below {{must have at least one level}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels []

// -----

// expected-error@below {{level "n": group sizes must add up to the 2 devices, got: 3}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [3], bandwidth = 1.0>]

// -----

// expected-error@below {{level "n": group sizes must add up to the 2 devices, got: 4294967294}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [9223372036854775807, 9223372036854775807], bandwidth = 1.0>]

// -----

// expected-error@below {{level "n": the outermost level must be one group of all devices, got: 2 groups}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [1, 1], bandwidth = 1.0>]

// -----

// expected-error@below {{host 1 has no entry in host_memory, which has 1}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200", host = 1>]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>] host_memory [1]

// -----

// expected-error@below {{host 1 has no entry in host_disks, which has 1}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200", host = 1>]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>] host_disks [#neuroshard.disk<>]

// -----

// expected-error@below {{host_memory has 1 hosts, and host_disks 2}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>] host_memory [1]
  host_disks [#neuroshard.disk<>, #neuroshard.disk<>]

// -----

// expected-error@below {{level "m": each group must lie inside one group of the level before}}
neuroshard.topology @cluster devices [#neuroshard.devices<4 x "H200">]
  levels [#neuroshard.level<"o", groups = [4], bandwidth = 1.0>,
          #neuroshard.level<"n", groups = [1, 3], bandwidth = 1.0>,
          #neuroshard.level<"m", groups = [2, 2], bandwidth = 1.0>]

// -----

// expected-error@below {{element type must be f32, f16, bf16 or a '!neuroshard.quantized', got: 'f64'}}
neuroshard.table @t : 10 x 4 x f64

// -----

// expected-error@below {{of '!neuroshard.quantized<int8>' is served and not trained: it must have no optimizer, got: #neuroshard.optimizer<sgd>}}
neuroshard.table @t : 10 x 4 x !neuroshard.quantized<int8> {optimizer = #neuroshard.optimizer<sgd>}

// -----

// expected-error@below {{expected int8, int4 or fp8, got: f16}}
neuroshard.table @t : 10 x 4 x !neuroshard.quantized<f16>

// -----

// expected-error@below {{attribute 'rows' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
neuroshard.table @t : 0 x 4 x f32

// -----

// expected-error@below {{attribute 'dim' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
neuroshard.table @t : 4 x -1 x f32

// -----

func.func @f(%a: tensor<?xi64>) {
  // expected-error@below {{needs ids and offsets for each of 2 features, got 1 and 1}}
  %0 = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%a : tensor<?xi64>) : !neuroshard.jagged<["a", "b"], i64>
  return
}

// -----

func.func @f(%a: tensor<?xi64>) {
  // expected-error@below {{weighted ids need weights}}
  %0 = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%a : tensor<?xi64>) : !neuroshard.jagged<["a"], i64, weighted>
  return
}

// -----

func.func @f(%a: tensor<?xi64>, %w: tensor<?xf32>) {
  // expected-error@below {{has weights, but its type is not weighted}}
  %0 = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%a : tensor<?xi64>) weights(%w : tensor<?xf32>) : !neuroshard.jagged<["a"], i64>
  return
}

// -----

func.func @f(%a: tensor<?xi64>, %w: tensor<?xf32>) {
  // expected-error@below {{needs weights for each of 1 features, got 2}}
  %0 = neuroshard.pack ids(%a : tensor<?xi64>) offsets(%a : tensor<?xi64>) weights(%w, %w : tensor<?xf32>, tensor<?xf32>) : !neuroshard.jagged<["a"], i64, weighted>
  return
}

// -----

func.func @f(%a: tensor<?xi32>) {
  // expected-error@below {{ids must be of the jagged type's 'i64', got: 'tensor<?xi32>'}}
  %0 = neuroshard.pack ids(%a : tensor<?xi32>) offsets(%a : tensor<?xi32>) : !neuroshard.jagged<["a"], i64>
  return
}

// -----

func.func @f(%a: tensor<?xi64>) {
  // expected-error@below {{weighted ids need weights}}
  %0 = neuroshard.from_keyed %a, %a : tensor<?xi64>, tensor<?xi64> -> !neuroshard.jagged<["a"], i64, weighted>
  return
}

// -----

func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{has no feature "x"}}
  %0:2 = neuroshard.unpack %a["x"] : !neuroshard.jagged<["a"], i64> -> tensor<?xi64>, tensor<?xi64>
  return
}

// -----

func.func @f(%a: !neuroshard.jagged<["a"], i64, weighted>) {
  // expected-error@below {{weighted ids need weights}}
  %0:2 = neuroshard.unpack %a["a"] : !neuroshard.jagged<["a"], i64, weighted> -> tensor<?xi64>, tensor<?xi64>
  return
}

// -----

func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{has no feature "x"}}
  %0 = neuroshard.num_ids %a["x"] : !neuroshard.jagged<["a"], i64>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{reads feature "x", which its ids do not have}}
  %0 = neuroshard.lookup sum @t[%a, "x"] : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{weighted lookup of feature "a" needs weighted ids}}
  %0 = neuroshard.lookup sum @t[%a, "a"] weighted : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64, weighted>) {
  // expected-error@below {{per-sample weights are defined for 'sum' only, got: 'mean'}}
  %0 = neuroshard.lookup mean @t[%a, "a"] weighted : !neuroshard.jagged<["a"], i64, weighted> -> tensor<?x4xf32>
  return
}

// -----

neuroshard.table @user : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{'usr' is not a table, and no other symbol; did you mean 'user'?}}
  %0 = neuroshard.lookup sum @usr[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{padding_idx must be a row of table 't' with 10 rows, got: 10}}
  %0 = neuroshard.lookup sum @t[%a, "a"] padding_idx 10 : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

// expected-note@below {{the table is defined here}}
neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{rows of table 't' have 4 columns, got: 'tensor<?x5xf32>'}}
  %0 = neuroshard.lookup sum @t[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x5xf32>
  return
}

// -----

// expected-note@below {{the symbol is defined here}}
func.func private @t()
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{'t' is not a table}}
  %0 = neuroshard.lookup sum @t[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @f(%a: !neuroshard.jagged<["a"], i64>, %g: tensor<?x4xf32>, %lr: f32, %step: i64) {
  // expected-error@below {{has 2 lookups but 1 gradients}}
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>, #neuroshard.lookup<sum @t["a"]>]
    ids(%a : !neuroshard.jagged<["a"], i64>) gradients(%g : tensor<?x4xf32>) learning_rate %lr step %step
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @f(%a: !neuroshard.jagged<["a"], i64>, %g: tensor<?x4xf32>, %lr: f32, %step: i64) {
  // expected-error@below {{updates 't', but has a lookup of 'u'}}
  neuroshard.update @t [#neuroshard.lookup<sum @u["a"]>]
    ids(%a : !neuroshard.jagged<["a"], i64>) gradients(%g : tensor<?x4xf32>) learning_rate %lr step %step
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @f(%a: !neuroshard.jagged<["a"], i64>, %g: tensor<?x4xf32>, %lr: f32, %step: i64) {
  // expected-error@below {{reads feature "x", which its ids do not have}}
  neuroshard.update @t [#neuroshard.lookup<sum @t["x"]>]
    ids(%a : !neuroshard.jagged<["a"], i64>) gradients(%g : tensor<?x4xf32>) learning_rate %lr step %step
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>, %g: tensor<?x4xf32>, %lr: f32, %step: i64) {
  // expected-error@below {{table 't' has no optimizer}}
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%a : !neuroshard.jagged<["a"], i64>) gradients(%g : tensor<?x4xf32>) learning_rate %lr step %step
  return
}

// -----

// expected-note@below {{the table is defined here}}
neuroshard.table @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @f(%a: !neuroshard.jagged<["a"], i64>, %g: tensor<?x5xf32>, %lr: f32, %step: i64) {
  // expected-error@below {{rows of table 't' have 4 columns, got: 'tensor<?x5xf32>'}}
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>]
    ids(%a : !neuroshard.jagged<["a"], i64>) gradients(%g : tensor<?x5xf32>) learning_rate %lr step %step
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64, weighted>, %g: tensor<?x4xf32>) {
  // expected-error@below {{lookup of feature "a" must be weighted}}
  %0 = neuroshard.weights_gradient %a [#neuroshard.lookup<sum @t["a"]>] gradients(%g) : !neuroshard.jagged<["a"], i64, weighted>, tensor<?x4xf32> -> tensor<?xf32>
  return
}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64, weighted>) {
  // expected-error@below {{must have at least one lookup}}
  %0 = "neuroshard.weights_gradient"(%a) <{lookups = []}> : (!neuroshard.jagged<["a"], i64, weighted>) -> tensor<?xf32>
  return
}

// -----

func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{must have a value for each type that the bundle lists, 0, got: 1}}
  %0 = neuroshard.suspend %a : !neuroshard.jagged<["a"], i64> -> !neuroshard.pending
  return
}

// -----

func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{must have a value for each type that the bundle lists, 0, got: 1}}
  %0 = neuroshard.save %a : !neuroshard.jagged<["a"], i64> -> !neuroshard.context
  return
}

// -----

func.func @f(%a: !neuroshard.pending) {
  // expected-error@below {{must have a value for each type that the bundle lists, 0, got: 1}}
  %0 = neuroshard.resume %a : !neuroshard.pending -> !neuroshard.jagged<["a"], i64>
  return
}

// -----

func.func @f(%a: !neuroshard.context<i64>) {
  // expected-error@below {{value 0 must have the type that the bundle lists, 'i64', got: '!neuroshard.jagged<["a"], i64>'}}
  %0 = neuroshard.restore %a : !neuroshard.context<i64> -> !neuroshard.jagged<["a"], i64>
  return
}

// -----

// expected-error@below {{has no attribute 'optimiser'; did you mean 'optimizer'?}}
neuroshard.table @t : 10 x 4 x f32 {optimiser = #neuroshard.optimizer<adagrad>}

// -----

neuroshard.table @t : 10 x 4 x f32
func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
  // expected-error@below {{has no attribute 'cost'; it has feature, padding_idx, pooling, stats, table, weighted, and one of another dialect needs its prefix}}
  %0 = neuroshard.lookup sum @t[%a, "a"] {cost = 1 : i64, mine.cost = 2 : i64} : !neuroshard.jagged<["a"], i64> -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%a: tensor<?xi64>) {
  // expected-error@below {{operand #0 must be '!neuroshard.jagged', ids of several features for one batch, but got 'tensor<?xi64>'}}
  %0 = "neuroshard.batch_size"(%a) : (tensor<?xi64>) -> index
  return
}

// -----

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table @t : 10 x 4 x f32
  func.func @f(%a: !neuroshard.jagged<["a"], i64>) {
    // Of unpooled rows there are as many as ids.
    %0 = neuroshard.lookup unpooled @t[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<63x4xf32>
    %1 = neuroshard.lookup sum @t[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<64x4xf32>
    // expected-error@below {{gives a row for each sample, of which there are 64 ('neuroshard.batch'), got: 'tensor<63x4xf32>'}}
    %2 = neuroshard.lookup sum @t[%a, "a"] : !neuroshard.jagged<["a"], i64> -> tensor<63x4xf32>
    return
  }
}

// -----

func.func @f(%a: tensor<?xi64>, %o: tensor<3xi64>, %p: tensor<4xi64>) {
  // expected-error@below {{offsets of all features must have batch + 1 entries, got 3 and 4}}
  %0 = neuroshard.pack ids(%a, %a : tensor<?xi64>, tensor<?xi64>) offsets(%o, %p : tensor<3xi64>, tensor<4xi64>)
    : !neuroshard.jagged<["a", "b"], i64>
  return
}
