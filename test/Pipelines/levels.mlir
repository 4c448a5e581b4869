// Each pipeline goes from the logical level to its own; native starts from partitioned.
// RUN: neuroshard-opt %s --neuroshard-to-planned='topology=2xH200 batch=64 seed=1' | FileCheck %s --check-prefix=PLANNED
// RUN: neuroshard-opt %s --neuroshard-to-planned='topology=2xH200 batch=64 dense-reserve=1GiB plan-name=p' | FileCheck %s --check-prefix=PROBLEM
// RUN: neuroshard-opt %s --neuroshard-to-sharded='topology=2xH200 batch=64 training=true' | FileCheck %s --check-prefix=SHARDED
// RUN: neuroshard-opt %s --neuroshard-to-partitioned='topology=1xH200 batch=64' | FileCheck %s --check-prefix=PARTITIONED
// RUN: neuroshard-opt %s --neuroshard-to-partitioned='topology=1xH200 batch=64 training=true entry=forward' --neuroshard-to-native=program=@program0 | FileCheck %s --check-prefix=NATIVE
// RUN: neuroshard-opt %s --neuroshard-reference=training=true | FileCheck %s --check-prefix=REFERENCE

// None of the first three takes what lies beyond the planned level.
// RUN: neuroshard-opt %s --neuroshard-to-sharded='topology=2xH200 batch=64' -o %t.mlir
// RUN: not neuroshard-opt %t.mlir --neuroshard-to-partitioned 2>&1 | FileCheck %s --check-prefix=LATER
// LATER: error: {{.*}} does not belong in a module of the planned level; neuroshard-to-planned, neuroshard-to-sharded and neuroshard-to-partitioned begin with one of the logical or the planned level

// The two equal lookups are planned and exchanged as one.
// PLANNED:     neuroshard.plan @plan
// PLANNED:       neuroshard.shard {{.*}} of @t
// PLANNED:     func.func @forward
// PLANNED:       neuroshard.lookup sum @t
// PLANNED-NOT:   neuroshard.lookup

// Every option that states a problem is there.
// PROBLEM: dense_reserve_bytes = 1073741824 : i64
// PROBLEM: neuroshard.plan @p

// SHARDED:       func.func @embeddings_start
// SHARDED:       func.func @embeddings_wait
// SHARDED:         neuroshard.fused_lookup
// SHARDED:       func.func @embeddings_update
// SHARDED:         neuroshard.fused_update

// PARTITIONED:     neuroshard.device_program @program0 for [0]
// PARTITIONED:     func.func @forward(%{{.*}}: !neuroshard.device
// PARTITIONED:       neuroshard.run_lookup
// PARTITIONED-NOT: embeddings_update

// NATIVE-NOT: neuroshard.{{[a-z_]+}} @
// NATIVE-DAG: llvm.func @nsrt_invoke_forward(
// NATIVE-DAG: llvm.func @nsrt_invoke_embeddings_update(
// NATIVE-DAG: neuroshard_program

// REFERENCE: func.func @embeddings_update({{.*}}neuroshard.weights = "t"

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.table private @t : 1000 x 16 x f32 {optimizer = #neuroshard.optimizer<sgd>}
func.func @forward(%ids: !ids) -> (tensor<?x16xf32>, tensor<?x16xf32>) {
  %0 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x16xf32>
  %1 = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x16xf32>
  return %0, %1 : tensor<?x16xf32>, tensor<?x16xf32>
}
