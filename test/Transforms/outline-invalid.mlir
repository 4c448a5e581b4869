// What neuroshard-outline refuses, and why.
// RUN: neuroshard-opt-raw %s --neuroshard-outline --split-input-file --verify-diagnostics

!ids = !neuroshard.jagged<["a"], i64>
// expected-error@below {{no function of the module has a lookup}}
module {
  func.func @forward(%ids: !ids) {
    return
  }
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
// expected-error@below {{'@forward' has no lookup whose result is used}}
func.func @forward(%ids: !ids) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
// expected-note@below {{the other function is here}}
func.func @one(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// expected-error@below {{'@two' and '@one' both have lookups; name the entry function with the option 'entry'}}
func.func @two(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
func.func @forward(%ids: !ids, %condition: i1, %other: tensor<?x4xf32>) -> tensor<?x4xf32> {
  %0 = scf.if %condition -> tensor<?x4xf32> {
    // expected-error@below {{must be in the top block of '@forward', not in a region or branch: every device takes part in every lookup of every step}}
    %1 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    scf.yield %1 : tensor<?x4xf32>
  } else {
    scf.yield %other : tensor<?x4xf32>
  }
  return %0 : tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
// expected-error@below {{the name '@embeddings_wait' is needed for the lookups of '@forward', but taken}}
func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// expected-note@below {{it is defined here}}
func.func private @embeddings_wait()

// -----

// Partitioned functions have a third name.
!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
// expected-error@below {{the name '@embeddings_lookup' is needed for the lookups of '@forward', but taken}}
func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
// expected-note@below {{it is defined here}}
func.func private @embeddings_lookup()

// -----

// Ids that depend on a result of the same step cannot be started with it.
!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
func.func private @next(tensor<?x4xf32>) -> !ids
func.func @forward(%ids: !ids) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  // expected-error@below {{makes the ids of a lookup after the result of another lookup is used, and depends on that use or has side effects; all ids of a step must be there before the first result}}
  // expected-note@below {{the first use is here}}
  %next = call @next(%0) : (tensor<?x4xf32>) -> !ids
  %1 = neuroshard.lookup sum @t[%next, "a"] : !ids -> tensor<?x4xf32>
  return %0, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @forward(%ids: !ids, %g: tensor<?x4xf32>, %lr: f32, %step: i64) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  // expected-error@below {{is not allowed in an entry function; updates are made by neuroshard-differentiate}}
  neuroshard.update @t [#neuroshard.lookup<sum @t["a"]>] ids(%ids : !ids)
    gradients(%g : tensor<?x4xf32>) learning_rate %lr step %step
  return %0 : tensor<?x4xf32>
}

// -----

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
// expected-error@below {{'@helper' has lookups and is called; inline it first: --inline}}
func.func @helper(%ids: !ids) -> tensor<?x4xf32> {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}
func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
  // expected-note@below {{it is called here}}
  %0 = call @helper(%ids) : (!ids) -> tensor<?x4xf32>
  return %0 : tensor<?x4xf32>
}

// -----

// Also by another use than the first.
!a = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 10 x 4 x f32
func.func @forward(%a: !a, %offsets: tensor<?xi64>, %n: index) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
  %0 = neuroshard.lookup sum @t[%a, "a"] : !a -> tensor<?x4xf32>
  // expected-note@below {{the first use is here}}
  %sum = arith.addf %0, %0 : tensor<?x4xf32>
  %ids = tensor.generate %n {
  ^bb0(%i: index):
    %c0 = arith.constant 0 : index
    %x = tensor.extract %0[%i, %c0] : tensor<?x4xf32>
    %id = arith.fptosi %x : f32 to i64
    tensor.yield %id : i64
  } : tensor<?xi64>
  // expected-error@below {{makes the ids of a lookup after the result of another lookup is used, and depends on that use or has side effects}}
  %b = neuroshard.pack ids(%ids : tensor<?xi64>) offsets(%offsets : tensor<?xi64>) : !a
  %1 = neuroshard.lookup sum @t[%b, "a"] : !a -> tensor<?x4xf32>
  return %sum, %1 : tensor<?x4xf32>, tensor<?x4xf32>
}
