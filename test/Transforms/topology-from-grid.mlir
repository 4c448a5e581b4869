// A module's shard.grid becomes its topology: axes are levels, links and memory those of the
// device class.
// RUN: split-file %s %t
// DEFINE: %{grid} =
// DEFINE: %{pass} = neuroshard-opt %t/%{grid}.mlir --neuroshard-topology-from-grid

// A module gets the topology that neuroshard-plan has for the text; its option 'topology'
// must be the one that is there.
// REDEFINE: %{grid} = two-axes
// RUN: %{pass}=device-class=H200 | FileCheck %s --check-prefix=NODES
// RUN: %{pass}=device-class=H200 | neuroshard-opt --neuroshard-plan='topology=2x8xH200 batch=64' -o /dev/null
// NODES:      neuroshard.topology @cluster
// NODES-SAME:   devices [#neuroshard.devices<8 x "H200">, #neuroshard.devices<8 x "H200", host = 1>]
// NODES-SAME:   levels [#neuroshard.level<"cluster", groups = [16], bandwidth = 4.500000e+01, latency = 3.000000e+01>,
// NODES-SAME:           #neuroshard.level<"node", groups = [8, 8], bandwidth = 3.720000e+02, latency = 1.090000e+01>]
// NODES:      shard.grid @mesh(shape = 2x8)

// REDEFINE: %{grid} = one-axis
// RUN: %{pass}=device-class=H200 | neuroshard-opt --neuroshard-plan='topology=12xH200 batch=64' -o /dev/null
// RUN: %{pass}='device-class=H200 memory=40GiB' | neuroshard-opt --neuroshard-plan='topology=12xH200@40GiB batch=64' -o /dev/null
// RUN: %{pass}='device-class=H200 node-size=3' | neuroshard-opt --neuroshard-plan='topology=4x3xH200 batch=64' -o /dev/null
// RUN: %{pass}=device-class=CPU | neuroshard-opt --neuroshard-plan='topology=12xCPU batch=64' -o /dev/null

// A class of a file, whose definition stays with the topology, and names in any case.
// RUN: %{pass}=device-class=MYCARD@%t/cards.json | FileCheck %s --check-prefix=OWN
// RUN: %{pass}=device-class=mycard@%t/cards.json | neuroshard-opt --neuroshard-plan='topology=12xMYCARD@%t/cards.json batch=64' -o /dev/null
// RUN: %{pass}=device-class=h200 | neuroshard-opt --neuroshard-plan='topology=12xH200 batch=64' -o /dev/null
// OWN: neuroshard.topology
// OWN-SAME: devices [#neuroshard.devices<8 x "MYCARD">
// OWN-SAME: neuroshard.device_classes = [{like = "H200", memory_bytes = 68719476736 : i64, name = "MYCARD"}]

// Axes with the same link are one level, axes of size 1 are none.
// REDEFINE: %{grid} = four-axes
// RUN: %{pass}=device-class=A100-40GB | neuroshard-opt --neuroshard-plan='topology=4x8xA100-40GB batch=64' -o /dev/null
// RUN: %{pass}='device-class=A100-40GB node-size=4' | neuroshard-opt --neuroshard-plan='topology=8x4xA100-40GB batch=64' -o /dev/null
// RUN: %{pass}='device-class=A100-40GB node-size=2' | FileCheck %s --check-prefix=CUT
// CUT:      levels [#neuroshard.level<"cluster", groups = [32], bandwidth = 2.200000e+01, latency = 3.000000e+01>,
// CUT-SAME:         #neuroshard.level<"node", groups = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2],
// REDEFINE: %{grid} = one-device
// RUN: %{pass}=device-class=H200 | neuroshard-opt --neuroshard-plan='topology=1xH200 batch=64' -o /dev/null

// Links that are known: each axis with a link of its own is a level.
// REDEFINE: %{grid} = four-axes
// RUN: %{pass}='device-class=H200 bandwidth=40,1,80,350 latency=30,0,30,15' | FileCheck %s --check-prefix=LINKS
// LINKS:      devices [#neuroshard.devices<8 x "H200">, #neuroshard.devices<8 x "H200", host = 1>, #neuroshard.devices<8 x "H200", host = 2>, #neuroshard.devices<8 x "H200", host = 3>]
// LINKS-SAME: levels [#neuroshard.level<"cluster", groups = [32], bandwidth = 4.000000e+01, latency = 3.000000e+01>,
// LINKS-SAME:         #neuroshard.level<"node", groups = [8, 8, 8, 8], bandwidth = 8.000000e+01, latency = 3.000000e+01>,
// LINKS-SAME:         #neuroshard.level<"axis3", groups = [4, 4, 4, 4, 4, 4, 4, 4], bandwidth = 3.500000e+02, latency = 1.500000e+01>]

// Of several grids one is named; the pass does nothing a second time, nor without a grid.
// REDEFINE: %{grid} = two-grids
// RUN: %{pass}='device-class=CPU grid=b' --neuroshard-topology-from-grid='device-class=CPU grid=b' | FileCheck %s --check-prefix=NAMED
// RUN: %{pass}='device-class=CPU grid=b' --neuroshard-topology-from-grid --neuroshard-topology-from-grid=device-class=CPU | FileCheck %s --check-prefix=NAMED
// NAMED-COUNT-1: neuroshard.topology @cluster devices [#neuroshard.devices<3 x "CPU">]
// NAMED-NOT:     neuroshard.topology
// REDEFINE: %{grid} = none
// RUN: %{pass} | FileCheck %s --check-prefix=NONE
// NONE:      module {
// NONE-NEXT: }

// The pipelines from the logical level take the class; the plan is one for the grid.
// RUN: neuroshard-opt %t/two-axes.mlir --neuroshard-to-planned='device-class=H200 batch=64' | FileCheck %s --check-prefix=PLAN
// RUN: neuroshard-opt %t/two-axes.mlir --neuroshard-to-planned='device-class=H200 topology=2x8xH200 batch=64' | FileCheck %s --check-prefix=PLAN
// PLAN: neuroshard.topology @cluster
// PLAN: neuroshard.plan @plan on @cluster

//--- two-axes.mlir
shard.grid @mesh(shape = 2x8)
neuroshard.table private @a : 100 x 8 x f32

//--- one-axis.mlir
shard.grid @mesh(shape = 12)
neuroshard.table private @a : 100 x 8 x f32

//--- four-axes.mlir
shard.grid @mesh(shape = 4x1x2x4)
neuroshard.table private @a : 100 x 8 x f32

//--- one-device.mlir
shard.grid @mesh(shape = 1x1)
neuroshard.table private @a : 100 x 8 x f32

//--- two-grids.mlir
shard.grid @a(shape = 2)
shard.grid @b(shape = 3)

//--- none.mlir
module {
}
//--- cards.json
{"schema": "neuroshard.machine.v1", "device_classes": [{"name": "MYCARD", "like": "H200", "memory_bytes": "64GiB"}]}
