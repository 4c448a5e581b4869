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

// The difference tolerated by default is that of the type in which results travel.
// RUN: neuroshard-compile %S/Inputs/planned.mlir -o %t/bf16 --reference --wire-type bf16
// RUN: neuroshard-run %t/bf16 --batch 9 --pooling 3
// RUN: not neuroshard-run %t/bf16 --batch 9 --pooling 3 --tolerance 1e-9 2>&1 | FileCheck %s --check-prefix=FAR
// FAR: neuroshard-run: the result differs from the unsharded program by {{.*}}, more than 1e-09; results and gradients travel as bf16, and --tolerance sets another limit

// RUN: not neuroshard-run %t/4 --batch 9 --pooling 3 --function embeddings_start 2>&1 | FileCheck %s --check-prefix=PART
// PART: neuroshard-run: 'embeddings_start' is a part of a step; expected a whole one, of which there are: forward
// RUN: not neuroshard-run %t/4 --batch 9 --pooling 3 --function backward 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: neuroshard-run: the artifact has no function 'backward'; it has forward
// RUN: echo '{"schema": "neuroshard.workload.v1", "batch": {"global_size": 9}, "tables": [{"name": "t", "rows": 5, "dim": 4}], "features": [{"name": "strange", "table": "t"}]}' > %t/strange.json
// RUN: not neuroshard-run %t/1 --batch 9 --workload %t/strange.json 2>&1 | FileCheck %s --check-prefix=STRANGE
// STRANGE: neuroshard-run: '{{.*}}strange.json' lists none of the artifact's features: {{.+}}

// Ids that are sent during the steps before give the same bits.
// RUN: neuroshard-run %t/4 --batch 9 --pooling 3 --train --steps 5 | grep difference > %t/plain.txt
// RUN: neuroshard-run %t/4 --batch 9 --pooling 3 --train --steps 5 --pipeline-depth 2 | grep difference > %t/ahead.txt
// RUN: neuroshard-run %t/4 --batch 9 --pooling 3 --train --steps 5 --pipeline-depth 9 | grep difference > %t/all.txt
// RUN: diff %t/plain.txt %t/ahead.txt && diff %t/plain.txt %t/all.txt
// RUN: not neuroshard-run %t/4 --pipeline-depth 2 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: neuroshard-run: --pipeline-depth is about training steps; expected --train with it
