// 22,327 GiB of weights with as much Adagrad state do not go onto 128 devices of 192 GiB: one
// error says so, with the numbers.
// RUN: neuroshard-translate --workload-to-mlir --topology=128xH200@192GiB %S/../../workloads/synthetic_colossal.json -o %t.mlir
// RUN: not neuroshard-opt %t.mlir --neuroshard-plan -o /dev/null 2>&1 | FileCheck %s --implicit-check-not=error:

// CHECK: error: no plan: device memory: the 2002 tables need 44,655 GiB (22,327 GiB weights + 22,327 GiB optimizer state); available: 128 devices x 192.0 GiB = 24,576 GiB
// CHECK: note: table 'g2_t0' needs 3,816 GiB (weights 1,907 GiB, optimizer state 1,907 GiB)
// CHECK: note: advice: use at least
