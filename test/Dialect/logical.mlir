// The logical ops print as they parse.
// RUN: neuroshard-dialect-opt %s | FileCheck %s

!ids = !neuroshard.jagged<["user_id", "item_id"], i64>
!wids = !neuroshard.jagged<["item_id"], i32, weighted>

// CHECK: neuroshard.topology @cluster
// CHECK-SAME: devices [#neuroshard.devices<8 x "A100-40GB">, #neuroshard.devices<8 x "A100-40GB", host = 1, memory = 40000000000>]
neuroshard.topology @cluster
  devices [#neuroshard.devices<8 x "A100-40GB">,
           #neuroshard.devices<8 x "A100-40GB", host = 1, memory = 40000000000>]
  levels [#neuroshard.level<"network", groups = [16], bandwidth = 22.0, latency = 20.0>,
          #neuroshard.level<"node", groups = [8, 8], bandwidth = 240.0, latency = 5.0>]
  host_memory [500000000000, 500000000000]
  // CHECK-SAME: host_memory [500000000000, 500000000000]
  // CHECK-SAME: host_disks [#neuroshard.disk<bytes = 15000000000000, reads = 2.200000e+06, bandwidth = 1.380000e+01>, #neuroshard.disk<>]
  host_disks [#neuroshard.disk<bytes = 15000000000000, reads = 2200000.0, bandwidth = 13.8>, #neuroshard.disk<>]

// CHECK: neuroshard.table private @user : 40000000 x 128 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @user : 40000000 x 128 x f32
  {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
// CHECK: neuroshard.table @served : 10 x 8 x !neuroshard.quantized<int4>
neuroshard.table @served : 10 x 8 x !neuroshard.quantized<int4>
// CHECK: neuroshard.table @item : 1000 x 3 x bf16 {{.*}}hashed
neuroshard.table @item : 1000 x 3 x bf16
  {hashed, optimizer = #neuroshard.optimizer<adam, beta1 = 0.8>}

// CHECK-LABEL: @lookups
func.func @lookups(%ids: !ids, %w: !wids) -> (tensor<?x128xf32>, tensor<?x3xf16>, tensor<?x3xf32>) {
  // CHECK: neuroshard.lookup sum @user[%{{.*}}, "user_id"] {stats = #neuroshard.feature<mean = 3.000000e+00, p99 = 1.000000e+01>}
  %u = neuroshard.lookup sum @user[%ids, "user_id"]
    {stats = #neuroshard.feature<mean = 3.0, p99 = 10.0>} : !ids -> tensor<?x128xf32>
  // CHECK: neuroshard.lookup mean @item[%{{.*}}, "item_id"] padding_idx 0
  %i = neuroshard.lookup mean @item[%ids, "item_id"] padding_idx 0 : !ids -> tensor<?x3xf16>
  // CHECK: neuroshard.lookup sum @item[%{{.*}}, "item_id"] weighted
  %v = neuroshard.lookup sum @item[%w, "item_id"] weighted : !wids -> tensor<?x3xf32>
  return %u, %i, %v : tensor<?x128xf32>, tensor<?x3xf16>, tensor<?x3xf32>
}

// CHECK-LABEL: neuroshard.plan @plan on @cluster semantics exact
neuroshard.plan @plan on @cluster semantics exact {
  // CHECK: neuroshard.shard "user_c0" of @user rows [0, 40000000) cols [0, 64) on [0]
  neuroshard.shard "user_c0" of @user rows [0, 40000000) cols [0, 64) on [0]
  neuroshard.shard "user_c1" of @user rows [0, 40000000) cols [64, 128) on [1] tier dram
  // CHECK: neuroshard.shard "item" of @item rows [0, {{[0-9]+}}) cols [0, 3) on [1] route relay
  neuroshard.shard "item" of @item rows [0, 1000) cols [0, 3) on [1] route relay
  // CHECK: neuroshard.pin @item on [1, 2]
  neuroshard.pin @item on [1, 2]
}
