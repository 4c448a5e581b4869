// What keeps a grid from becoming a topology.
// RUN: split-file %s %t
// DEFINE: %{grid} = two
// DEFINE: %{options} = device-class=H200
// DEFINE: %{message} =
// DEFINE: %{refuses} = neuroshard-opt-raw %t/%{grid}.mlir --neuroshard-topology-from-grid='%{options}' --verify-diagnostics

// REDEFINE: %{options} =
// REDEFINE: %{grid} = no-class
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=P100
// REDEFINE: %{grid} = class
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200
// REDEFINE: %{grid} = dynamic
// RUN: %{refuses}
// REDEFINE: %{grid} = empty-axis
// RUN: %{refuses}
// REDEFINE: %{grid} = large
// RUN: %{refuses}
// REDEFINE: %{grid} = several
// RUN: %{refuses}
// REDEFINE: %{grid} = other-topology
// RUN: %{refuses}
// REDEFINE: %{grid} = no-grid
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 grid=c
// REDEFINE: %{grid} = name
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 memory=lots
// REDEFINE: %{grid} = memory
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 node-size=-1
// REDEFINE: %{grid} = node-size
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 bandwidth=45
// REDEFINE: %{grid} = bandwidths
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 bandwidth=45,0
// REDEFINE: %{grid} = zero-bandwidth
// RUN: %{refuses}
// REDEFINE: %{options} = device-class=H200 latency=1,-2
// REDEFINE: %{grid} = latency
// RUN: %{refuses}

// neuroshard-plan by itself says what to do, and so do the pipelines.
// RUN: neuroshard-opt-raw %t/plan.mlir --neuroshard-plan=batch=4 --verify-diagnostics
// RUN: neuroshard-opt-raw %t/no-class.mlir --neuroshard-to-planned=batch=4 --verify-diagnostics
// RUN: neuroshard-opt-raw %t/contradiction.mlir --neuroshard-to-planned='batch=4 topology=4xH200 device-class=H200' --verify-diagnostics

//--- no-class.mlir
// expected-error@below {{does not say what its devices are; name their class with the option 'device-class', one of: H200, H100, H100-PCIe, A100-80GB, A100-40GB, B200, B300, GB200, MI300X, MI355X, L40S, A10G, L4, CPU}}
shard.grid @mesh(shape = 2x8)

//--- class.mlir
// expected-error@below {{option 'device-class': expected one of: H200, H100, H100-PCIe, A100-80GB, A100-40GB, B200, B300, GB200, MI300X, MI355X, L40S, A10G, L4, CPU, got: 'P100'}}
shard.grid @mesh(shape = 2x8)

//--- dynamic.mlir
// expected-error@below {{has an axis of unknown size ('?'); a topology needs the number of its devices}}
shard.grid @mesh(shape = 2x?)

//--- empty-axis.mlir
// expected-error@below {{shape: axis 1 must have at least 1 device, got: 0}}
shard.grid @mesh(shape = 2x0)

//--- large.mlir
// expected-error@below {{shape: expected at most 65536 devices}}
shard.grid @mesh(shape = 4294967296x4294967296)

//--- several.mlir
// expected-note@below {{another one is here}}
shard.grid @a(shape = 2)
// expected-error@below {{'shard.grid' op is not the only one in the module; name the one that the devices are in with the option 'grid'}}
shard.grid @b(shape = 2)

//--- name.mlir
// expected-error@below {{option 'grid': the module has no 'shard.grid' of the name 'c'}}
module {
  shard.grid @a(shape = 2)
}

//--- no-grid.mlir
// expected-error@below {{option 'device-class' is for a module with a 'shard.grid', but there is none}}
module {
}

//--- other-topology.mlir
// expected-note@below {{the module's topology is here}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"n", groups = [2], bandwidth = 1.0>]
// expected-error@below {{gives another topology than the one that is there; change one of them, or leave out the option 'device-class'}}
shard.grid @a(shape = 2)

//--- memory.mlir
// expected-error@below {{option 'memory': size: expected a size with its unit, such as 40GiB, 512MiB, 40GB or 4096B, got: 'lots'}}
shard.grid @mesh(shape = 2x8)

//--- node-size.mlir
// expected-error@below {{option 'node-size' must be at least 0, got: -1}}
shard.grid @mesh(shape = 2x8)

//--- bandwidths.mlir
// expected-error@below {{bandwidth: expected one number for each of the 2 axes, got: 1}}
shard.grid @mesh(shape = 2x8)

//--- zero-bandwidth.mlir
// expected-error@below {{bandwidth: expected numbers above 0, got: 0.000000}}
shard.grid @mesh(shape = 2x8)

//--- latency.mlir
// expected-error@below {{latency: expected numbers of at least 0, got: -2.000000}}
shard.grid @mesh(shape = 2x8)

//--- plan.mlir
// expected-error@below {{a plan needs a topology}}
module {
  // expected-note@below {{neuroshard-topology-from-grid makes one of this}}
  shard.grid @mesh(shape = 2x8)
}

//--- contradiction.mlir
// expected-error@below {{option 'topology' is '4xH200', but the module has another topology}}
module {
  // expected-note@below {{the module's topology is here}}
  shard.grid @mesh(shape = 2x8)
}
