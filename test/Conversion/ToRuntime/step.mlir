// One device program with the functions of a training step as calls of the runtime.

// RUN: neuroshard-opt %s --convert-neuroshard-to-runtime="program=@program1" | FileCheck %s

!ids = !neuroshard.jagged<["a"], i64>
!weighted = !neuroshard.jagged<["b"], i32, weighted>
!routed = !neuroshard.routed
!partials = !neuroshard.partials
!looked_up = !neuroshard.pending<!routed, !weighted, !routed, !partials, !partials>
!context = !neuroshard.context<!routed, !weighted, !routed>

// CHECK-NOT: neuroshard.{{table|topology|plan|exchange|device_program}}
neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
  levels [#neuroshard.level<"node", groups = [2], bandwidth = 8.0, latency = 20.0>]
neuroshard.table @t : 100 x 20 x bf16 {optimizer = #neuroshard.optimizer<sgd>}
neuroshard.table @u : 10 x 3 x f32 {optimizer = #neuroshard.optimizer<adam>}
neuroshard.plan @plan on @cluster semantics exact {
  neuroshard.shard "t0" of @t rows [0, 100) cols [0, 16) on [0]
  neuroshard.shard "t1" of @t rows [0, 100) cols [16, 20) on [1]
  neuroshard.shard "u" of @u rows [0, 10) cols [0, 3) on [1]
}
neuroshard.exchange @ids of !ids on @plan lookups [#neuroshard.lookup<mean @t["a"]>]
  results [tensor<?x20xf16>]
neuroshard.exchange @weighted of !weighted on @plan
  lookups [#neuroshard.lookup<sum @u["b"] weighted>] results [tensor<?x3xf32>]
neuroshard.device_program @program0 for [0] {
  neuroshard.local_table 0 : 16 x bf16 of 20 shards ["t0"] {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.local_lookup pooled of 0 in @ids binds [0]
}
neuroshard.device_program @program1 for [1] {
  neuroshard.local_table 0 : 4 x bf16 of 20 shards ["t1"] {optimizer = #neuroshard.optimizer<sgd>}
  neuroshard.local_lookup pooled of 0 in @ids binds [0]
  neuroshard.local_table 1 : 3 x f32 of 3 shards ["u"] {optimizer = #neuroshard.optimizer<adam>}
  neuroshard.local_lookup pooled weighted of 1 in @weighted binds [0]
}

// CHECK-LABEL: func.func @embeddings_start(
// CHECK-SAME: %[[D:[a-z0-9]*]]: !llvm.ptr {nsrt.device}, %[[I:[a-z0-9]*]]: tensor<?xi64>, %[[O:[a-z0-9]*]]: tensor<?xi64>,
// CHECK-SAME: %[[WI:[a-z0-9]*]]: tensor<?xi32>, %[[WO:[a-z0-9]*]]: tensor<?xi64>, %[[WW:[a-z0-9]*]]: tensor<?xf32>)
// CHECK-SAME: -> (!llvm.ptr, tensor<?xi32>, tensor<?xi64>, tensor<?xf32>, !llvm.ptr)
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: %[[R0:.*]] = call @nsrt_route(%[[D]], %{{.*}}, %[[PI:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %[[NULL]])
// CHECK: bufferization.to_buffer %[[WW]] read_only
// CHECK: %[[R1:.*]] = call @nsrt_route(%[[D]]
// CHECK: %[[SIZE:.*]] = tensor.dim %[[WI]], %{{.*}}
// CHECK: %[[BYTES:.*]] = arith.muli %{{.*}}, %[[SIZE]] : index
// CHECK: %[[COPY:.*]] = memref.alloc(%[[SIZE]]) {alignment = 64 : i64} : memref<?xi32>
// CHECK: call @nsrt_tensor_copy(%[[D]],
// CHECK: %[[CI:.*]] = bufferization.to_tensor %[[COPY]]
// CHECK: return %[[R0]], %[[CI]], %{{.*}}, %{{.*}}, %[[R1]]
func.func @embeddings_start(%dev: !neuroshard.device, %ids: !ids, %w: !weighted)
    -> !neuroshard.pending<!routed, !weighted, !routed> {
  %r0 = neuroshard.route @ids(%dev, %ids) : !ids
  %r1 = neuroshard.route @weighted(%dev, %w) : !weighted
  %p = neuroshard.suspend %r0, %w, %r1 : !routed, !weighted, !routed
    -> !neuroshard.pending<!routed, !weighted, !routed>
  return %p : !neuroshard.pending<!routed, !weighted, !routed>
}

// CHECK-LABEL: func.func @embeddings_lookup(
// CHECK-SAME: %[[D:[a-z0-9]*]]: !llvm.ptr {nsrt.device}, %[[R0:[a-z0-9]*]]: !llvm.ptr,
// CHECK: %[[P0:.*]] = call @nsrt_lookup(%[[D]], %[[R0]])
// CHECK: call @nsrt_results_start(%[[D]], %[[R0]], %[[P0]])
// CHECK: %[[P1:.*]] = call @nsrt_lookup
// CHECK: call @nsrt_results_start
// CHECK: return %[[R0]], {{.*}}, %[[P0]], %[[P1]]
func.func @embeddings_lookup(%dev: !neuroshard.device, %p: !neuroshard.pending<!routed, !weighted, !routed>)
    -> !looked_up {
  %r0, %w, %r1 = neuroshard.resume %p : !neuroshard.pending<!routed, !weighted, !routed>
    -> !routed, !weighted, !routed
  %p0 = neuroshard.run_lookup @ids(%dev, %r0)
  %p1 = neuroshard.run_lookup @weighted(%dev, %r1)
  %q = neuroshard.suspend %r0, %w, %r1, %p0, %p1 : !routed, !weighted, !routed, !partials, !partials
    -> !looked_up
  return %q : !looked_up
}

// CHECK-LABEL: func.func @embeddings_wait(
// CHECK-SAME: %[[D:[a-z0-9]*]]: !llvm.ptr {nsrt.device}, %[[R0:[a-z0-9]*]]: !llvm.ptr,
// CHECK-SAME: %[[P0:[a-z0-9]*]]: !llvm.ptr, %{{[a-z0-9]*}}: !llvm.ptr)
// CHECK-NOT: nsrt_results_start
// CHECK: %[[C0:.*]] = arith.constant 0 : i64
// CHECK: %[[N:.*]] = call @nsrt_result_rows(%[[D]], %[[R0]], %[[C0]])
// CHECK: %[[ROWS:.*]] = arith.index_cast %[[N]]
// CHECK: %[[OUT:.*]] = memref.alloc(%[[ROWS]]) {alignment = 64 : i64} : memref<?x20xf16>
// CHECK: %[[F16:.*]] = arith.constant 1 : i32
// CHECK: %[[DIM:.*]] = arith.constant 20 : i64
// CHECK: %[[ONE:.*]] = arith.constant 1 : i64
// CHECK: %[[TYPES:.*]] = llvm.alloca {{.*}} x i32
// CHECK: llvm.store %[[F16]]
// CHECK: %[[OUTS:.*]] = llvm.alloca {{.*}} x !llvm.ptr
// CHECK: %[[STRIDES:.*]] = llvm.alloca {{.*}} x i64
// CHECK: llvm.store %[[DIM]], %{{.*}} : i64
// CHECK: call @nsrt_results_wait(%[[D]], %[[R0]], %[[P0]], %[[ONE]], %[[TYPES]], %[[OUTS]], %[[STRIDES]])
// CHECK: bufferization.to_tensor %[[OUT]] restrict writable
// CHECK: call @nsrt_partials_release(%[[D]], %[[P0]])
func.func @embeddings_wait(%dev: !neuroshard.device, %p: !looked_up)
    -> (tensor<?x20xf16>, tensor<?x3xf32>, !context) {
  %r0, %w, %r1, %p0, %p1 = neuroshard.resume %p : !looked_up
    -> !routed, !weighted, !routed, !partials, !partials
  %t = neuroshard.exchange_results @ids(%dev, %r0, %p0) -> tensor<?x20xf16>
  neuroshard.release %dev, %p0 : !partials
  %u = neuroshard.exchange_results @weighted(%dev, %r1, %p1) -> tensor<?x3xf32>
  neuroshard.release %dev, %p1 : !partials
  %c = neuroshard.save %r0, %w, %r1 : !routed, !weighted, !routed -> !context
  return %t, %u, %c : tensor<?x20xf16>, tensor<?x3xf32>, !context
}

// CHECK-LABEL: func.func @embeddings_update(
// CHECK-SAME: %[[D:[a-z0-9]*]]: !llvm.ptr {nsrt.device}, %[[R0:[a-z0-9]*]]: !llvm.ptr,
// CHECK-SAME: %[[WI:[a-z0-9]*]]: tensor<?xi32>
// CHECK-SAME: %[[R1:[a-z0-9]*]]: !llvm.ptr, %[[GT:[a-z0-9]*]]: tensor<?x20xf16> {bufferization.buffer_layout = strided<[?, 1]>}, %{{.*}}: tensor<?x3xf32> {bufferization.buffer_layout = strided<[?, 1]>}, %[[LR:[a-z0-9]*]]: f32, %[[STEP:[a-z0-9]*]]: i64) -> tensor<?xf32>
// CHECK: %[[F16:.*]] = arith.constant 1 : i32
// CHECK: %[[ROWS:.*]] = bufferization.to_buffer %[[GT]] read_only : tensor<?x20xf16> to memref<?x20xf16, strided<[?, 1]>>
// CHECK: memref.extract_strided_metadata %[[ROWS]]
// CHECK: %[[LASTS:.*]] = arith.constant 1 : i32
// CHECK: %[[G0:.*]] = call @nsrt_gradients_pack(%[[D]], %[[R0]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LASTS]])
// CHECK: call @nsrt_gradients_start(%[[D]], %[[R0]], %[[G0]])
// CHECK: %[[G1:.*]] = call @nsrt_gradients_pack(%[[D]], %[[R1]]
// CHECK: %[[COUNT:.*]] = tensor.dim %[[WI]]
// CHECK: %[[W:.*]] = memref.alloc(%[[COUNT]]) {alignment = 64 : i64} : memref<?xf32>
// CHECK: call @nsrt_weights_gradient(%[[D]], %[[R1]], %[[G1]], %{{.*}})
// CHECK: %[[TWO:.*]] = arith.constant 2 : i64
// CHECK: %[[ROUTED:.*]] = llvm.alloca
// CHECK: llvm.store %[[R0]]
// CHECK: llvm.store %[[R1]]
// CHECK: %[[GRADIENTS:.*]] = llvm.alloca
// CHECK: call @nsrt_update(%[[D]], %[[TWO]], %[[ROUTED]], %[[GRADIENTS]], %[[LR]], %[[STEP]])
// CHECK: call @nsrt_partials_release(%[[D]], %[[G0]])
// CHECK: call @nsrt_routed_release(%[[D]], %[[R0]])
func.func @embeddings_update(%dev: !neuroshard.device, %c: !context, %gt: tensor<?x20xf16>,
    %gu: tensor<?x3xf32>, %lr: f32, %step: i64) -> tensor<?xf32> {
  %r0, %w, %r1 = neuroshard.restore %c : !context -> !routed, !weighted, !routed
  %g0 = neuroshard.exchange_gradients @ids(%dev, %r0) gradients(%gt) : tensor<?x20xf16>
  %g1 = neuroshard.exchange_gradients @weighted(%dev, %r1) gradients(%gu) : tensor<?x3xf32>
  %gw = neuroshard.run_weights_gradient @weighted(%dev, %w, %r1, %g1) : !weighted -> tensor<?xf32>
  neuroshard.run_update [@ids, @weighted](%dev) routed(%r0, %r1) gradients(%g0, %g1)
    learning_rate %lr step %step
  neuroshard.release %dev, %g0 : !partials
  neuroshard.release %dev, %g1 : !partials
  neuroshard.release %dev, %r0 : !routed
  neuroshard.release %dev, %r1 : !routed
  return %gw : tensor<?xf32>
}

// The kernels of program1: 4 columns in bf16, 3 in f32, with their optimizers.
// CHECK-DAG: func.func private @nsk_lookup_sum_bf16_d4_i32
// CHECK-DAG: func.func private @nsk_lookup_sum_f32_d3_i32_weighted
// CHECK-DAG: func.func private @nsk_update_sgd_bf16_d4
// CHECK-DAG: func.func private @nsk_weight_gradient_f32_d3_i32
// CHECK-DAG: llvm.mlir.global external constant @neuroshard_program
