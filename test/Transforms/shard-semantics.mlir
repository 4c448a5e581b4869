// Two phases are for row-wise optimizers with exact semantics on column shards only.
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard=plan=exact | FileCheck %s --check-prefix=EXACT
// RUN: neuroshard-opt %s --neuroshard-outline --neuroshard-differentiate --neuroshard-shard=plan=per_shard | FileCheck %s --check-prefix=PER-SHARD

!ids = !neuroshard.jagged<["a", "b"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @rowwise : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @elementwise : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
neuroshard.plan @exact on @cluster semantics exact {
  neuroshard.shard "r0" of @rowwise rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "r1" of @rowwise rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "e0" of @elementwise rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "e1" of @elementwise rows [0, 100) cols [4, 8) on [1]
}
neuroshard.plan @per_shard on @cluster semantics per_shard {
  neuroshard.shard "r0" of @rowwise rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "r1" of @rowwise rows [0, 100) cols [4, 8) on [1]
  neuroshard.shard "e0" of @elementwise rows [0, 100) cols [0, 4) on [0]
  neuroshard.shard "e1" of @elementwise rows [0, 100) cols [4, 8) on [1]
}

// EXACT-LABEL: func.func @embeddings_update
// EXACT:         neuroshard.fused_update [#neuroshard.lookup<sum @elementwise["b"]>]
// EXACT:         neuroshard.reduce_rows [#neuroshard.lookup<sum @rowwise["a"]>]
// EXACT:         neuroshard.exchange_norms {{.*}} [@rowwise]
// EXACT:         neuroshard.apply_rows {{.*}} [@rowwise]
// PER-SHARD-LABEL: func.func @embeddings_update
// PER-SHARD-NOT:     neuroshard.reduce_rows
// PER-SHARD:         neuroshard.fused_update [#neuroshard.lookup<sum @rowwise["a"]>]
// PER-SHARD:         neuroshard.fused_update [#neuroshard.lookup<sum @elementwise["b"]>]
func.func @forward(%ids: !ids) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %0 = neuroshard.lookup sum @rowwise[%ids, "a"] : !ids -> tensor<?x8xf32>
  %1 = neuroshard.lookup sum @elementwise[%ids, "b"] : !ids -> tensor<?x8xf32>
  return %0, %1 : tensor<?x8xf32>, tensor<?x8xf32>
}
