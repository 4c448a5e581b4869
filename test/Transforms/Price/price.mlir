// What a plan, its shards and tables cost, as remarks. A plan of the search is priced as the search has
// priced it; bytes are those of the tables: @user has 1000 rows of 64 columns and an f32 of state for
// each, @item 100 rows of 16 and a state for each element.

// RUN: split-file %s %t
// RUN: neuroshard-opt %t/model.mlir --neuroshard-plan="topology=2xCPU@1MiB dense-reserve=0 fragmentation-reserve=0 communicator-reserve=0 cost-model=roofline" -o %t/planned.mlir
// RUN: neuroshard-opt %t/planned.mlir --neuroshard-price=cost-model=roofline -o %t/same.mlir 2>&1 | FileCheck %t/model.mlir --implicit-check-not=error:
// RUN: neuroshard-opt %t/planned.mlir -o - | diff - %t/same.mlir
// RUN: neuroshard-opt %t/by-hand.mlir --neuroshard-price=cost-model=roofline -o /dev/null 2>&1 | FileCheck %t/by-hand.mlir --implicit-check-not=error:
// RUN: sed -e "s/objective = .step./objective = \"published\"/" %t/by-hand.mlir > %t/published.mlir
// RUN: neuroshard-opt %t/published.mlir --neuroshard-price="plan=plan cost-model=reference" -o /dev/null 2>&1 | FileCheck %t/by-hand.mlir --check-prefix=ONE
// RUN: neuroshard-opt %t/tiers.mlir --neuroshard-price=cost-model=roofline -o /dev/null 2>&1 | FileCheck %t/tiers.mlir --implicit-check-not=error:

//--- model.mlir
// CHECK: remark: predicted step [[COST:[0-9.]+]] ms by 'roofline': input {{.*}}, forward {{.*}}, backward {{.*}} ms
// CHECK: remark: device {{[01]}} computes longest: lookups {{.*}} ms, updates {{.*}} ms; device {{[01]}} is fullest: {{.*}} of 1.0 MiB
// CHECK: remark: made by the algorithm 'default' with seed 0, for which 'roofline' predicted [[COST]] ms
!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.table private @user : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x16xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    %i = neuroshard.lookup sum @item[%ids, "item"] : !ids -> tensor<?x16xf32>
    return %u, %i : tensor<?x64xf32>, tensor<?x16xf32>
  }
}

//--- by-hand.mlir
// CHECK: remark: predicted step
// CHECK-NEXT: neuroshard.plan
// CHECK: remark: device 1 computes longest:
// CHECK-NOT: made by
// CHECK: remark: device 0: {{.*}}: weights 250.0 KiB, optimizer states 3.9 KiB, buffers {{.*}}; alone: lookups {{[0-9.]+}} ms, updates {{[0-9.]+}} ms{{$}}
// CHECK-NEXT: neuroshard.shard "user"
// CHECK: remark: device 1: {{.*}}: weights 3.1 KiB, optimizer states 3.1 KiB, {{.*}}; device 1 computes longest; device 1 is fullest
// CHECK-NEXT: neuroshard.shard "item_0"
// CHECK: remark: device 1: {{.*}}: weights 3.1 KiB, optimizer states 3.1 KiB,
// CHECK-NEXT: neuroshard.shard "item_1"
// CHECK: remark: devices 0, 1: {{.*}} on each: weights 4.0 MiB, optimizer states {{0.*}}, buffers
// CHECK-NEXT: neuroshard.shard "word"
// CHECK: remark: 1000 x 64, 253.9 KiB of weights and optimizer states; table_wise: 1 shard on device 0
// CHECK-NEXT: neuroshard.table private @user
// CHECK: remark: 100 x 16, 12.5 KiB of weights and optimizer states; column_wise: 2 shards on device 1
// CHECK-NEXT: neuroshard.table private @item
// CHECK: remark: 65536 x 16, 4.0 MiB of weights and optimizer states; replicated: 1 shard on devices 0, 1
// CHECK-NEXT: neuroshard.table private @word

// ONE: remark: predicted published cost {{[0-9.]+}} ms by 'reference'
// ONE: remark: device {{[01]}} computes longest: lookups and updates {{[0-9.]+}} ms; device
// ONE: alone: lookups and updates
!ids = !neuroshard.jagged<["user", "item"], i64>
module attributes {neuroshard.batch = 256 : i64} {
  neuroshard.table private @user : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
  neuroshard.table private @item : 100 x 16 x f32 {optimizer = #neuroshard.optimizer<adagrad>}
  neuroshard.table private @word : 65536 x 16 x f32
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"host", groups = [2], bandwidth = 10.0, latency = 5.0>]
  neuroshard.plan @plan on @cluster semantics exact provenance {objective = "step"} {
    neuroshard.shard "user" of @user rows [0, 1000) cols [0, 64) on [0]
    neuroshard.shard "item_0" of @item rows [0, 100) cols [0, 8) on [1]
    neuroshard.shard "item_1" of @item rows [0, 100) cols [8, 16) on [1]
    neuroshard.shard "word" of @word rows [0, 65536) cols [0, 16) on [0, 1]
  }
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x16xf32>, tensor<?x16xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] : !ids -> tensor<?x64xf32>
    %i = neuroshard.lookup sum @item[%ids, "item"] {stats = #neuroshard.feature<mean = 50.0>} : !ids -> tensor<?x16xf32>
    %w = neuroshard.lookup sum @word[%ids, "item"] {stats = #neuroshard.feature<mean = 50.0>} : !ids -> tensor<?x16xf32>
    return %u, %i, %w : tensor<?x64xf32>, tensor<?x16xf32>, tensor<?x16xf32>
  }
}

//--- tiers.mlir
// Tables below device memory, under two snapshots. Each device has one shard, so what is slowest is that
// shard alone.
// CHECK: remark: predicted step {{[0-9.]+}} ms by 'roofline': input {{[0-9.]+}} ms, fetch {{.*}}
// CHECK: remark: device 0 computes longest: lookups [[LOOKUPS:[0-9.]+]] ms, updates [[UPDATES:[0-9.]+]] ms
// CHECK: remark: device 0 fetches rows of lower tiers longest:
// CHECK: remark: device 0: {{.*}}, on the host 25.0 MiB; alone: lookups [[LOOKUPS]] ms, updates [[UPDATES]] ms; device 0 computes longest
// CHECK: remark: device 1: {{.*}}, on disk 24.4 MiB; alone:
!ids = !neuroshard.jagged<["user", "page"], i64>
module attributes {neuroshard.batch = 256 : i64,
    neuroshard.planning = {snapshots = [{name = "night", weight = 2.0, features = [{feature = "page", stats = #neuroshard.feature<mean = 12.0>}]}, {name = "day", weight = 1.0}]}} {
  neuroshard.table private @user : 100000 x 64 x f32
  neuroshard.table private @page : 100000 x 64 x f32
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "H200">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 370.0, latency = 11.0>] host_memory [500000000000]
    host_disks [#neuroshard.disk<bytes = 15000000000000>]
  neuroshard.plan @plan on @cluster semantics exact {
    neuroshard.shard "user" of @user rows [0, 100000) cols [0, 64) on [0] tier dram cache 19200
    neuroshard.shard "page" of @page rows [0, 100000) cols [0, 64) on [1] tier ssd cache 19200
  }
  func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    %u = neuroshard.lookup sum @user[%ids, "user"] {stats = #neuroshard.feature<mean = 50.0>} : !ids -> tensor<?x64xf32>
    %p = neuroshard.lookup sum @page[%ids, "page"] {stats = #neuroshard.feature<mean = 10.0>} : !ids -> tensor<?x64xf32>
    return %u, %p : tensor<?x64xf32>, tensor<?x64xf32>
  }
}
