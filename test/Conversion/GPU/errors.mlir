// Options for GPUs that cannot be taken are one error each, and no artifact is written.
// RUN: rm -rf %t && not neuroshard-compile %s --batch 64 --gpu sm_70 -o %t 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not neuroshard-compile %s --batch 64 --gpu ninety -o %t 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not neuroshard-compile %s --batch 64 --gpu sm_90 --cuda-toolkit %t/none -o %t 2>&1 | FileCheck %s --check-prefix=TOOLKIT
// RUN: not neuroshard-compile %s --batch 64 --gpu sm_90 --gpu-output f64 -o %t 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not neuroshard-compile %s --batch 64 --gpu-output f16 -o %t 2>&1 | FileCheck %s --check-prefix=ALONE
// RUN: not neuroshard-opt %s --convert-neuroshard-to-gpu 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not ls %t

// ARCH: expected a GPU architecture of sm_80 {{.*}} sm_121, got: 'sm_70'
// NAME: expected a GPU architecture of sm_80 {{.*}} sm_121, got: 'ninety'
// TOOLKIT: no ptxas at '{{.*}}none/bin/ptxas'; name the folder of a CUDA toolkit with --cuda-toolkit
// OUTPUT: --gpu-output
// ALONE: --gpu-output and --cuda-toolkit have an effect only with --gpu or --emulate
// LEVEL: has no device program: the conversion to the runtime takes partitioned IR

!ids = !neuroshard.jagged<["a"], i64>
neuroshard.topology @cluster devices [#neuroshard.devices<1 x "H200">]
  levels [#neuroshard.level<"node", groups = [1], bandwidth = 450.0, latency = 5.0>]
neuroshard.table private @t0 : 1000 x 64 x f32
func.func @forward(%ids: !ids) -> tensor<?x64xf32> {
  %0 = neuroshard.lookup sum @t0[%ids, "a"] : !ids -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
