// Two features, one of them in two tables; a dense part on the sums.
!ids = !neuroshard.jagged<["user", "item"], i64>

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.table private @users : 100 x 8 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  neuroshard.table private @items : 50 x 20 x f16 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  func.func @forward(%dense: tensor<?x8xf32>, %ids: !ids)
      -> (tensor<?x8xf32>, tensor<?x20xf32>, tensor<?x8xf32>) {
    %u = neuroshard.lookup sum @users[%ids, "user"] : !ids -> tensor<?x8xf32>
    %i = neuroshard.lookup mean @items[%ids, "item"] padding_idx 0 : !ids -> tensor<?x20xf32>
    %v = neuroshard.lookup unpooled @users[%ids, "item"] : !ids -> tensor<?x8xf32>
    %sum = arith.addf %dense, %u : tensor<?x8xf32>
    return %sum, %i, %v : tensor<?x8xf32>, tensor<?x20xf32>, tensor<?x8xf32>
  }
}
