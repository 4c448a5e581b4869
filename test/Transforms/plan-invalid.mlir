// What neuroshard-plan cannot plan, and why.
// RUN: neuroshard-opt %s --neuroshard-plan -split-input-file -verify-diagnostics

// Costs and memory depend on the batch.
// expected-error @below {{the global batch is not known; set the attribute 'neuroshard.batch' or the option 'batch'}}
module {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

// expected-error @below {{a plan needs a topology; add a 'neuroshard.topology' or the option 'topology', such as topology=8xH200}}
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table @a : 100 x 8 x f32
}

// -----

module attributes {neuroshard.batch = 8 : i64} {
  // expected-error @below {{'neuroshard.topology' op unknown device class 'abacus'; known: H200}}
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "abacus">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

module attributes {neuroshard.batch = 8 : i64} {
  // expected-error @below {{'neuroshard.topology' op must have at most 65536 devices and hosts}}
  neuroshard.topology @cluster devices [#neuroshard.devices<40000 x "CPU">, #neuroshard.devices<40000 x "CPU">]
    levels [#neuroshard.level<"node", groups = [80000], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

module attributes {neuroshard.batch = 8 : i64} {
  // expected-note @below {{another one is here}}
  neuroshard.topology @one devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  // expected-error @below {{'neuroshard.topology' is not the only one in the module; write a plan on the one that is meant}}
  neuroshard.topology @two devices [#neuroshard.devices<4 x "CPU">]
    levels [#neuroshard.level<"node", groups = [4], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
  // expected-note @below {{another one is here}}
  neuroshard.plan @p on @cluster semantics exact {}
  // expected-error @below {{'neuroshard.plan' is not the only one in the module; name the one that is meant: 'plan' of a pass, 'plan-name' of a pipeline or tool}}
  neuroshard.plan @q on @cluster semantics exact {}
}

// -----

module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  // expected-error @below {{'neuroshard.table' op has the name 'plan' of the plan; choose another with 'plan-name'}}
  neuroshard.table @plan : 100 x 8 x f32
}

// -----

// A complete plan is not trusted: device 1 does not have the memory.
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {memory_model = "weights_only"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<1 x "CPU">, #neuroshard.devices<1 x "CPU", memory = 1000>]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
  // expected-error @below {{device 1: needs 3.1 KiB}}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "a" of @a rows [0, 100) cols [0, 8) on [1]
  }
}

// -----

// Too little memory for any plan.
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {memory_model = "weights_only"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU", memory = 1000>]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
  // expected-error @below {{no plan: device memory:}}
  // expected-note @below {{table 'a' needs 3.1 KiB}}
  // expected-note @below {{advice:}}
  neuroshard.plan @plan on @cluster semantics exact {}
}

// -----

// Pins of one table that no device satisfies.
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
  // expected-error @below {{constraints: pins and forbids of table 'a' leave none of the 2 devices; relax one of them}}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.pin @a on [0]
    neuroshard.pin @a on [1]
  }
}

// -----

// expected-error @below {{'neuroshard.planning' has an unknown key 'colour'}}
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {colour = "blue"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

// expected-error @below {{'neuroshard.planning' has an unusable value for 'table': @nobody; expected the name of a table of the module, such as @user}}
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {forbid = [{table = @nobody, devices = array<i64: 0>}]}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

// expected-error @below {{'neuroshard.planning' has an unusable value for 'wire_type': "f32/f32"; expected f32, f16, bf16, int8 or fp8, or one of them for results}}
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {wire_type = "f32/f32"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}

// -----

// expected-error @below {{'neuroshard.planning' has an unusable value for 'input_copies': "two"; expected a number of type i64}}
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {input_copies = "two"}} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}
