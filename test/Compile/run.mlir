// Artifacts of one model on 1, 2 and 4 devices give what the unsharded program gives: the
// same bits on one device, and up to the order of sums over row shards on more.

// RUN: rm -rf %t && mkdir %t
// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/1 --topology 1xCPU --reference
// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/2 --topology 2xCPU --reference -O1
// RUN: neuroshard-compile %S/Inputs/model.mlir -o %t/4 --topology 4xCPU --reference --training
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/p --reference --target-cpu x86-64-v3
// RUN: neuroshard-run %t/1 --batch 9 --pooling 3 --tolerance 0
// RUN: neuroshard-run %t/2 --batch 9 --pooling 3 --tolerance 1e-6
// RUN: neuroshard-run %t/4 --batch 9 --pooling 3 --tolerance 1e-6
// RUN: neuroshard-run %t/p --batch 9 --pooling 3 --tolerance 1e-6
