// neuroshard-plan adds a plan with its provenance, records what its options change, and leaves
// a complete plan alone.
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=size seed=7 dense-rest-ms=2.5 cost-model=roofline" -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: neuroshard-opt %t.mlir --neuroshard-plan -o %t.again.mlir
// RUN: diff %t.mlir %t.again.mlir
// RUN: neuroshard-opt %s --neuroshard-plan="algorithm=size plan-name=mine batch=128 \
// RUN:     target=torchrec-1.9 memory-model=weights_only semantics=per_shard dense-reserve=1MiB \
// RUN:     fragmentation-reserve=0 communicator-reserve=8B" \
// RUN:   | FileCheck %s --check-prefix=CHANGED

// CHANGED:      module attributes {neuroshard.batch = 128 : i64, neuroshard.planning = {
// CHANGED-SAME:   communicator_reserve_bytes = 8 : i64, dense_reserve_bytes = 1048576 : i64,
// CHANGED-SAME:   fragmentation_reserve_bytes = 0 : i64, memory_model = "weights_only",
// CHANGED-SAME:   optimizer_semantics = "per_shard", target = "torchrec-1.9"}}
// CHANGED:      neuroshard.plan @mine on @cluster semantics per_shard

// The largest table comes first, each on the device with the least so far.
// CHECK:      module attributes {neuroshard.batch = 64 : i64} {
// CHECK:      neuroshard.plan @plan on @cluster semantics exact provenance {
// CHECK-SAME:   algorithm = "size", cost_model = "roofline", lower_bound_ms = {{[0-9.E-]+}} : f64,
// CHECK-SAME:   objective = "step", predicted_cost_ms = {{[0-9.E-]+}} : f64, seed = 7 : ui64,
// CHECK-SAME:   settings = {{\[}}["batch", "64"], ["target", "native"], ["memory_model", "full"],
// CHECK-SAME:   ["wire_type", "f32"], ["dense_bottom_ms", "0"], ["dense_rest_ms", "2.5"], ["pipeline_depth", "1"], ["evaluation_budget", "0"]],
// CHECK-SAME:   table_fingerprint = "fnv1a64:
// CHECK-NEXT:   neuroshard.shard "a_0" of @a rows [0, 1000) cols [0, 64) on [0]
// CHECK-NEXT:   neuroshard.shard "b_0" of @b rows [0, 100) cols [0, 8) on [1]
// CHECK-NEXT:   neuroshard.shard "c_0" of @c rows [0, 100) cols [0, 8) on [1]
// CHECK-NEXT: }

!ids = !neuroshard.jagged<["a", "b", "c"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster
    devices [#neuroshard.devices<2 x "H200">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 350.0, latency = 15.0>]
  neuroshard.table private @a : 1000 x 64 x f32
  neuroshard.table private @b : 100 x 8 x f32
  neuroshard.table private @c : 100 x 8 x f32
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
    %0 = neuroshard.lookup sum @a[%ids, "a"] : !ids -> tensor<?x64xf32>
    %1 = neuroshard.lookup sum @b[%ids, "b"] : !ids -> tensor<?x8xf32>
    %2 = neuroshard.lookup sum @c[%ids, "c"] : !ids -> tensor<?x8xf32>
    return %0, %1, %2 : tensor<?x64xf32>, tensor<?x8xf32>, tensor<?x8xf32>
  }
}
