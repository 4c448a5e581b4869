// Results of several lookups are columns of one tensor.

// RUN: neuroshard-opt %s --convert-neuroshard-to-runtime="program=@program0" | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>

neuroshard.topology @cluster devices [#neuroshard.devices<1 x "CPU">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 8.0, latency = 20.0>]
neuroshard.table @t : 100 x 20 x bf16
neuroshard.table @u : 10 x 3 x f32
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t" of @t rows [0, 100) cols [0, 20) on [0]
  neuroshard.shard "u" of @u rows [0, 10) cols [0, 3) on [0]
}
neuroshard.exchange @e of !ids on @plan
  lookups [#neuroshard.lookup<mean @t["a"]>, #neuroshard.lookup<sum @u["a"]>]
  results [tensor<?x20xf16>, tensor<?x3xf16>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 20 x bf16 of 20 shards ["t"]
  neuroshard.local_lookup pooled of 0 in @e binds [0]
  neuroshard.local_table 1 : 3 x f32 of 3 shards ["u"]
  neuroshard.local_lookup pooled of 1 in @e binds [1]
}

// CHECK-LABEL: func.func @wait(
// CHECK: call @nsrt_result_rows
// CHECK: %[[OUT:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x23xf16>
// CHECK: %[[FIRST:.*]] = llvm.inttoptr
// CHECK: %[[STRIDE:.*]] = arith.constant 23 : i64
// CHECK: %[[BEGIN:.*]] = llvm.inttoptr
// CHECK: %[[SECOND:.*]] = llvm.getelementptr %[[BEGIN]][20] : (!llvm.ptr) -> !llvm.ptr, f16
// CHECK: %[[SAME:.*]] = arith.constant 23 : i64
// CHECK: llvm.store %[[FIRST]]
// CHECK: llvm.store %[[SECOND]]
// CHECK: llvm.store %[[STRIDE]]
// CHECK: llvm.store %[[SAME]]
// CHECK: call @nsrt_results_wait
// CHECK: %[[RESULT:.*]] = bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: return %[[RESULT]]
func.func @wait(%d: !neuroshard.device, %r: !neuroshard.routed, %p: !neuroshard.partials)
    -> tensor<?x23xf16> {
  %x = neuroshard.exchange_joined_results @e(%d, %r, %p) -> tensor<?x23xf16>
  return %x : tensor<?x23xf16>
}
