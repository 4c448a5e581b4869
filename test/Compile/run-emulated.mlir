// The programs for GPUs, in the emulator, give what the unsharded program
// gives, and train its tables.

// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/3 --topology 3xCPU --reference --training --emulate -O 0
// RUN: env NEUROSHARD_EMULATOR_OWN_MEMORY=1 neuroshard-run %t/3 --batch 9 --pooling 3 --train --device emulator --tolerance 1e-6 | FileCheck %s
// CHECK: forward on 3 devices, global batch 9, compared with the unsharded program
// CHECK: step 1
// CHECK: largest difference
// CHECK: training
// CHECK: largest difference

// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/cpu --topology 1xCPU
// RUN: not neuroshard-run %t/cpu --batch 9 --device emulator 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: neuroshard-run: '{{.*}}cpu' has no program0.gpu.json: it was compiled for the CPU alone; compile the model with --gpu or --emulate

// RUN: env NEUROSHARD_CUDA_DRIVER=%t/missing.so not neuroshard-run %t/3 --batch 9 --device cuda 2>&1 | FileCheck %s --check-prefix=CUDA
// CUDA: neuroshard-run: no CUDA driver: {{.*}}missing.so{{.*}} (NEUROSHARD_CUDA_DRIVER may name another library)
// RUN: not neuroshard-run %t/3 --batch 9 --device tpu 2>&1 | FileCheck %s --check-prefix=TPU
// TPU: --device: tpu not in {cpu,cuda,emulator}
