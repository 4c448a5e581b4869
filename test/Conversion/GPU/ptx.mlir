// The machine code: rows are read 16 bytes at a time through the read-only cache, square
// roots round correctly, and no kernel needs shared memory, barriers or memory of a thread's
// own.
// RUN: rm -rf %t && neuroshard-compile %s --training --batch 64 --gpu sm_80,sm_90 -o %t
// RUN: FileCheck %s --input-file=%t/program0.ptx
// RUN: FileCheck %s --input-file=%t/program0.ptx --check-prefix=NONE
// RUN: FileCheck %s --input-file=%t/program0.gpu.json --check-prefix=JSON
// RUN: %python %S/../../../tools/gpu/check_sass.py %t/program0.sm_80.cubin %t/program0.sm_90.cubin \
// RUN:   | FileCheck %s --check-prefix=SASS

!ids = !neuroshard.jagged<["a", "b", "c"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t0 : 1000 x 64 x f32 {optimizer = #neuroshard.optimizer<rowwise_adagrad>}
neuroshard.table private @t1 : 500 x 128 x bf16 {optimizer = #neuroshard.optimizer<adam>}
neuroshard.table private @t2 : 500 x 20 x f16 {optimizer = #neuroshard.optimizer<sgd>}
func.func @forward(%ids: !ids) -> (tensor<?x64xf32>, tensor<?x128xf32>, tensor<?x20xf32>) {
  %0 = neuroshard.lookup sum @t0[%ids, "a"] : !ids -> tensor<?x64xf32>
  %1 = neuroshard.lookup mean @t1[%ids, "b"] : !ids -> tensor<?x128xf32>
  %2 = neuroshard.lookup unpooled @t2[%ids, "c"] : !ids -> tensor<?x20xf32>
  return %0, %1, %2 : tensor<?x64xf32>, tensor<?x128xf32>, tensor<?x20xf32>
}

// CHECK: .target sm_80
// CHECK: .entry nsg_lookup(
// CHECK: .maxntid 256
// CHECK-COUNT-4: ld.global.nc.v4
// CHECK: atom.global.min.u64
// CHECK: st.global.v4
// CHECK: .entry nsg_update_0(
// CHECK: shfl.sync.bfly.b32
// CHECK: bar.warp.sync
// CHECK: sqrt.rn.f32

// NONE-NOT: .local
// NONE-NOT: .shared
// NONE-NOT: bar.sync
// NONE-NOT: sqrt.approx
// NONE-NOT: fma.rn.f32

// JSON: "schema": "neuroshard.gpu_program/1"
// JSON: "abi": 16
// JSON: "module": "{{[0-9a-f]+}}"
// JSON: "file": "program0.sm_80.cubin"
// JSON: "kernels": [
// JSON-NEXT: "nsg_lookup"

// SASS-DAG: nsg_lookup
// SASS-DAG: nsg_update_0
