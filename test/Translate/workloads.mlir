// Every workload becomes a module and back again, byte for byte, and so does the module.
//
// DEFINE: %{name} =
// DEFINE: %{roundtrip} = \
// DEFINE:   neuroshard-translate --workload-to-mlir %S/../../workloads/%{name}.json -o %t.mlir && \
// DEFINE:   neuroshard-translate --mlir-to-workload %t.mlir -o %t.json && \
// DEFINE:   diff %S/../../workloads/%{name}.json %t.json && \
// DEFINE:   neuroshard-translate --workload-to-mlir %t.json -o %t.again.mlir && \
// DEFINE:   diff %t.mlir %t.again.mlir && \
// DEFINE:   neuroshard-opt %t.mlir -o /dev/null

// REDEFINE: %{name} = criteo_kaggle
// RUN: %{roundtrip}
// REDEFINE: %{name} = criteo_terabyte
// RUN: %{roundtrip}
// REDEFINE: %{name} = synthetic_tiny
// RUN: %{roundtrip}
// RUN: FileCheck %s --check-prefix=TINY < %t.mlir
// REDEFINE: %{name} = synthetic_small
// RUN: %{roundtrip}
// REDEFINE: %{name} = synthetic_medium
// RUN: %{roundtrip}
// REDEFINE: %{name} = synthetic_large
// RUN: %{roundtrip}
// REDEFINE: %{name} = synthetic_jumbo
// RUN: %{roundtrip}
// REDEFINE: %{name} = synthetic_colossal
// RUN: %{roundtrip}
// REDEFINE: %{name} = mlperf_dlrm_v2
// RUN: %{roundtrip}
// RUN: FileCheck %s --check-prefix=DLRM < %t.mlir

// All features have one argument, all lookups one function.
// DLRM:      !ids = !neuroshard.jagged<["t0_id", {{.*}}, "t25_id"], i64>
// DLRM:      module attributes {neuroshard.batch = 65536 : i64, neuroshard.planning = {source = "MLPerf training
// DLRM-NEXT: neuroshard.table private @t0 : 40000000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
// DLRM:      neuroshard.table private @t25 : 36 x 128 x f32
// DLRM-NEXT: func.func @forward(%arg0: !ids) -> (tensor<?x128xf32>,
// DLRM-NEXT:   %0 = neuroshard.lookup sum @t0[%arg0, "t0_id"] {stats = #neuroshard.feature<mean = 3.000000e+00>} : !ids -> tensor<?x128xf32>
// DLRM:        return %0, %1,

// Two features read one table.
// TINY:      neuroshard.table private @g0_t0 :
// TINY:      neuroshard.lookup sum @g0_t0[%arg0, "[[A:.*]]"] {stats = #neuroshard.feature<mean = 1.000000e+00>}
// TINY-NEXT: neuroshard.lookup sum @g0_t0[%arg0, "{{.*}}"] {stats = #neuroshard.feature<mean = 1.000000e+01>}
