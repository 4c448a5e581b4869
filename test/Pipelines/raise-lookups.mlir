// The pipelines from the logical level raise lookups first if they are told to, and pass plugins bring the pass.
// RUN: neuroshard-opt %s --neuroshard-to-planned='topology=2xH200 raise-lookups=true' | FileCheck %s --check-prefix=PLANNED
// RUN: neuroshard-opt %s --neuroshard-to-partitioned='topology=1xH200 raise-lookups=true' | FileCheck %s --check-prefix=PARTITIONED
// RUN: not neuroshard-opt %s --neuroshard-to-planned='topology=2xH200' 2>&1 | FileCheck %s --check-prefix=NONE

// PLANNED:     neuroshard.table private @user
// PLANNED:     neuroshard.shard {{.*}} of @user
// PLANNED:     neuroshard.lookup unpooled @user
// PARTITIONED: neuroshard.device_program
// PARTITIONED: neuroshard.run_lookup
// NONE: error:

module attributes {neuroshard.batch = 64 : i64} {
  func.func @forward(%user: tensor<1000x16xf32> loc("user"), %ids: tensor<?x1xi64>) -> tensor<?x16xf32> {
    %rows = tensor.gather %user[%ids] gather_dims([0]) : (tensor<1000x16xf32>, tensor<?x1xi64>) -> tensor<?x16xf32>
    return %rows : tensor<?x16xf32>
  }
}
