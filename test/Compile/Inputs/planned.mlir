// A model with a plan by hand: columns on devices 0 and 2, rows on 1 and 0, 3 has nothing.
!ids = !neuroshard.jagged<["user", "item"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<4 x "CPU">]
    levels [#neuroshard.level<"node", groups = [4], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table private @users : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  neuroshard.table private @items : 50 x 20 x f16 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "users_0" of @users rows [0, 60) cols [0, 8) on [1]
    neuroshard.shard "users_1" of @users rows [60, 100) cols [0, 8) on [0]
    neuroshard.shard "items_0" of @items rows [0, 50) cols [0, 12) on [0]
    neuroshard.shard "items_1" of @items rows [0, 50) cols [12, 20) on [2]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x8xf32>, tensor<?x20xf32>) {
    %u = neuroshard.lookup sum @users[%ids, "user"] : !ids -> tensor<?x8xf32>
    %i = neuroshard.lookup mean @items[%ids, "item"] padding_idx 0 : !ids -> tensor<?x20xf32>
    return %u, %i : tensor<?x8xf32>, tensor<?x20xf32>
  }
}
