// Tables with copies of shards on some devices exchange sums in their update: beside norms if their
// row-wise optimizer is exact and columns are cut, and apart from tables that exchange other things.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard | FileCheck %s
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-fuse --neuroshard-verify-sharded | FileCheck %s --check-prefix=FUSED
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-fuse --verify-roundtrip -o /dev/null

// RUN: sed -e 's/ on \[0, 1, 2, 3\]/& sync_every 10/' -e 's/ on \[2\]/ on [0, 1, 2, 3] sync_every 10/' %s \
// RUN:   | neuroshard-opt --neuroshard-outline --neuroshard-differentiate --neuroshard-shard --neuroshard-fuse --neuroshard-verify-sharded | FileCheck %s --check-prefix=DRIFT

// Copies that drift are updated as tables on one device are, also a whole table on all devices.
// DRIFT-LABEL: func.func @embeddings_update
// DRIFT:         neuroshard.fused_update [#neuroshard.lookup<sum @rows["a"]>, #neuroshard.lookup<sum @all["d"]>]
// DRIFT:         neuroshard.exchange_copies {{.*}} [@columns]
// DRIFT-NOT:     neuroshard.exchange_copies

!ids = !neuroshard.jagged<["a", "b", "c", "d"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<4 x "H200">]
  levels [#neuroshard.level<"cluster", groups = [4], bandwidth = 50.0, latency = 10.0>,
          #neuroshard.level<"node", groups = [2, 2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @rows : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table private @columns : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @norms : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @all : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "r0" of @rows rows [0, 30) cols [0, 8) on [0, 1, 2, 3]
  neuroshard.shard "r1" of @rows rows [30, 100) cols [0, 8) on [2]
  neuroshard.shard "c0" of @columns rows [0, 100) cols [0, 4) on [0, 2]
  neuroshard.shard "c1" of @columns rows [0, 100) cols [4, 8) on [1, 3]
  neuroshard.shard "n0" of @norms rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "n1" of @norms rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "all" of @all rows [0, 100) cols [0, 8) on [0, 1, 2, 3]
}

// CHECK-LABEL: func.func @embeddings_start
// CHECK-COUNT-3: neuroshard.distribute_ids
// CHECK-NOT:     neuroshard.distribute_ids
// CHECK-LABEL: func.func @embeddings_update
// CHECK:         neuroshard.fused_update [#neuroshard.lookup<sum @all["d"]>]
// CHECK:         %[[ROWS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @rows["a"]>]
// CHECK:         %[[COLUMNS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @columns["b"]>]
// CHECK:         %[[NORMS:.*]] = neuroshard.reduce_rows [#neuroshard.lookup<sum @norms["c"]>]
// CHECK:         %[[ROW_SUMS:.*]] = neuroshard.exchange_copies %[[ROWS]] [@rows]
// CHECK:         %[[COLUMN_SUMS:.*]] = neuroshard.exchange_copies %[[COLUMNS]] [@columns]
// CHECK:         %[[COLUMN_NORMS:.*]] = neuroshard.exchange_norms %[[COLUMN_SUMS]] [@columns]
// CHECK:         %[[OTHER_NORMS:.*]] = neuroshard.exchange_norms %[[NORMS]] [@norms]
// CHECK:         neuroshard.apply_rows %[[ROW_SUMS]] [@rows]
// CHECK:         neuroshard.apply_rows %[[COLUMN_NORMS]] [@columns]
// CHECK:         neuroshard.apply_rows %[[OTHER_NORMS]] [@norms]

// FUSED-LABEL: func.func @embeddings_update
// FUSED-COUNT-3: neuroshard.reduce_rows
// FUSED-NOT:     neuroshard.reduce_rows
func.func @forward(%ids: !ids) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = neuroshard.lookup sum @rows[%ids, "a"] : !ids -> tensor<?x8xf32>
  %1 = neuroshard.lookup sum @columns[%ids, "b"] : !ids -> tensor<?x8xf32>
  %2 = neuroshard.lookup sum @norms[%ids, "c"] : !ids -> tensor<?x8xf32>
  %3 = neuroshard.lookup sum @all[%ids, "d"] : !ids -> tensor<?x8xf32>
  return %0, %1, %2, %3 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
