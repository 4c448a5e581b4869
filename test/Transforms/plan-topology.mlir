// A module without devices gets those of the option, and so the plan is a plan for them.
// RUN: neuroshard-opt %s --neuroshard-plan="topology=2x8xA100-40GB batch=64" | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-plan="topology=8+4xA100-40GB batch=64" | FileCheck %s --check-prefix=UNEQUAL
// A machine file has the topology that was measured, and what memory its ranks take.
// RUN: rm -rf %t && mkdir %t
// RUN: echo '{"schema": "neuroshard.machine.v1", "topology": {"levels": [{"name": "node", "groups": [2], "bandwidth_gb_per_s": 8, "latency_us": 20}], "hosts": [{"memory_bytes": 68719476736}], "devices": [{"class": "CPU", "memory_bytes": 17179869184, "host": 0, "reserves": {"fragmentation_bytes": 5}}, {"class": "CPU", "memory_bytes": 17179869184, "host": 0, "reserves": {"fragmentation_bytes": 5}}]}}' >%t/machine.json
// RUN: neuroshard-opt %s --neuroshard-plan="topology=%t/machine.json batch=64" | FileCheck %s --check-prefix=MEASURED
// RUN: sed -i 's/17179869184/0/' %t/machine.json
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=%t/machine.json batch=64" 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: echo '[]' >%t/wrong.json
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=%t/wrong.json batch=64" 2>&1 | FileCheck %s --check-prefix=NOT

// CHECK:      module attributes {neuroshard.batch = 64 : i64}
// CHECK-NEXT: neuroshard.topology @cluster devices [#neuroshard.devices<8 x "A100-40GB">, #neuroshard.devices<8 x "A100-40GB", host = 1>]
// CHECK-SAME:   groups = [16]{{.*}}groups = [8, 8]
// CHECK:      neuroshard.plan @plan on @cluster semantics exact

// MEASURED:   neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU", fragmentation_reserve = 5>]
// WRONG: machine.json: topology.devices[0].memory_bytes: expected at least 1 byte
// NOT: wrong.json: expected a file with a topology, such as one of neuroshard calibrate

// UNEQUAL:      neuroshard.topology @cluster devices [#neuroshard.devices<8 x "A100-40GB">, #neuroshard.devices<4 x "A100-40GB", host = 1>]
// UNEQUAL-SAME:   groups = [12]{{.*}}groups = [8, 4]

neuroshard.table private @a : 100 x 8 x f32
