// Every option of neuroshard-plan that makes no sense is one error that says what would.
// RUN: not neuroshard-opt %s --neuroshard-plan="algorithm=magic" 2>&1 | FileCheck %s --check-prefix=ALGORITHM --implicit-check-not=error:
// ALGORITHM: error: option 'algorithm': expected default, published, random, dim, size, lookup, size-lookup, dreamshard, torchrec or threshold, got: 'magic'
// RUN: not neuroshard-opt %s --neuroshard-plan="objective=fame" 2>&1 | FileCheck %s --check-prefix=OBJECTIVE --implicit-check-not=error:
// OBJECTIVE: error: option 'objective': expected step or published, got: 'fame'
// RUN: not neuroshard-opt %s --neuroshard-plan="cost-model=guess" 2>&1 | FileCheck %s --check-prefix=MODEL --implicit-check-not=error:
// MODEL: error: option 'cost-model': expected auto, roofline, reference, .safetensors files separated by commas or a machine file (.json), got: 'guess'
// The reference model predicts no backward pass of its own, which a step needs.
// RUN: not neuroshard-opt %s --neuroshard-plan="cost-model=reference" 2>&1 | FileCheck %s --check-prefix=REFERENCE --implicit-check-not=error:
// REFERENCE: error: no plan: bad input: {{.*}}reference
// REFERENCE-NOT: advice
// RUN: not neuroshard-opt %s --neuroshard-plan="algorithm=dreamshard policy=no/such.safetensors" 2>&1 | FileCheck %s --check-prefix=POLICY --implicit-check-not=error:
// POLICY: error: option 'policy': no/such.safetensors: {{.*}}
// RUN: not neuroshard-opt %s --neuroshard-plan="policy=some.safetensors" 2>&1 | FileCheck %s --check-prefix=IDLE --implicit-check-not=error:
// IDLE: error: option 'policy': only the algorithm 'dreamshard' reads it
// RUN: not neuroshard-opt %s --neuroshard-plan="algorithm=dreamshard policy-samples=-2" 2>&1 | FileCheck %s --check-prefix=SAMPLES --implicit-check-not=error:
// SAMPLES: error: option 'policy-samples': expected a whole number in [0, 1000000], got: -2
// RUN: not neuroshard-opt %s --neuroshard-plan="target=toaster" 2>&1 | FileCheck %s --check-prefix=TARGET --implicit-check-not=error:
// TARGET: error: option 'target' must be native or torchrec-1.9, got: 'toaster'
// RUN: not neuroshard-opt %s --neuroshard-plan="memory-model=none" 2>&1 | FileCheck %s --check-prefix=MEMORY --implicit-check-not=error:
// MEMORY: error: option 'memory-model' must be full or weights_only, got: 'none'
// RUN: not neuroshard-opt %s --neuroshard-plan="semantics=vague" 2>&1 | FileCheck %s --check-prefix=SEMANTICS --implicit-check-not=error:
// SEMANTICS: error: option 'semantics' must be exact or per_shard, got: 'vague'
// RUN: not neuroshard-opt %s --neuroshard-plan="wire-type=f8" 2>&1 | FileCheck %s --check-prefix=WIRE --implicit-check-not=error:
// WIRE: error: option 'wire-type' must be f32, f16, bf16, int8 or fp8, or one of them for results and another for gradients, such as f32/bf16, got: 'f8'
// RUN: not neuroshard-opt %s --neuroshard-plan="wire-types=f32,f8" 2>&1 | FileCheck %s --check-prefix=WIRES --implicit-check-not=error:
// WIRES: error: option 'wire-types': expected auto, or types with commas between them, each once: f32, f16, bf16, int8 or fp8, or one of them for results and another for gradients, such as f32/bf16, got: 'f32,f8'
// RUN: not neuroshard-opt %s --neuroshard-plan="wire-type=f32 wire-types=auto" 2>&1 | FileCheck %s --check-prefix=BOTH --implicit-check-not=error:
// BOTH: error: option 'wire-type' has no effect beside 'wire-types'; give one of them
// RUN: not neuroshard-opt %s --neuroshard-plan="dense-reserve=much" 2>&1 | FileCheck %s --check-prefix=RESERVE --implicit-check-not=error:
// RESERVE: error: option 'dense-reserve': {{.*}}expected a size with its unit, such as 40GiB{{.*}} got: 'much'
// RUN: not neuroshard-opt %s --neuroshard-plan="dense-rest-ms=-1" 2>&1 | FileCheck %s --check-prefix=DENSE --implicit-check-not=error:
// DENSE: error: option 'dense-rest-ms': expected a number in [0, 1e+11], got: -1
// RUN: not neuroshard-opt %s --neuroshard-plan="deadline-s=nan" 2>&1 | FileCheck %s --check-prefix=DEADLINE --implicit-check-not=error:
// DEADLINE: error: option 'deadline-s': expected a number in [0, 1e+09], got: nan
// RUN: not neuroshard-opt %s --neuroshard-plan="pipeline-depth=0" 2>&1 | FileCheck %s --check-prefix=DEPTH --implicit-check-not=error:
// DEPTH: error: option 'pipeline-depth': expected a whole number in [1, 1000000], got: 0
// RUN: not neuroshard-opt %s --neuroshard-plan="evaluation-budget=-3" 2>&1 | FileCheck %s --check-prefix=EVALUATIONS --implicit-check-not=error:
// EVALUATIONS: error: option 'evaluation-budget': expected a whole number in [0, 4611686018427387904], got: -3
// RUN: not neuroshard-opt %s --neuroshard-plan="threads=-1" 2>&1 | FileCheck %s --check-prefix=THREADS --implicit-check-not=error:
// THREADS: error: option 'threads': expected a whole number in [0, 1024], got: -1
// RUN: not neuroshard-opt %s --neuroshard-plan="threads=100000" 2>&1 | FileCheck %s --check-prefix=MANY --implicit-check-not=error:
// MANY: error: option 'threads': expected a whole number in [0, 1024], got: 100000
// RUN: not neuroshard-opt %s --neuroshard-plan="previous=no/such.json" 2>&1 | FileCheck %s --check-prefix=PREVIOUS --implicit-check-not=error:
// PREVIOUS: error: option 'previous': no/such.json: {{.*}}
// RUN: echo '{"schema": "neuroshard.plan.v1", "device_count": 2, "shards": []}' > %t.json
// RUN: not neuroshard-opt %s --neuroshard-plan="previous=%t.json horizon-steps=inf" 2>&1 | FileCheck %s --check-prefix=HORIZON --implicit-check-not=error:
// HORIZON: error: option 'horizon-steps': expected a number in [1e-09, 1e+15], got: inf
// RUN: not neuroshard-opt %s --neuroshard-plan="previous=%t.json tolerance=2" 2>&1 | FileCheck %s --check-prefix=TOLERANCE --implicit-check-not=error:
// TOLERANCE: error: option 'tolerance': expected a number in [0, 1], got: 2
// RUN: not neuroshard-opt %s --neuroshard-plan="horizon-steps=7" 2>&1 | FileCheck %s --check-prefix=ALONE --implicit-check-not=error:
// ALONE: error: option 'horizon-steps': it needs the option 'previous'
// RUN: not neuroshard-opt %s --neuroshard-plan="beam-width=7" 2>&1 | FileCheck %s --check-prefix=BEAM --implicit-check-not=error:
// BEAM: error: option 'beam-width': only the algorithm 'published' reads it
// RUN: not neuroshard-opt %s --neuroshard-plan="algorithm=published grid-end=0.5" 2>&1 | FileCheck %s --check-prefix=GRID --implicit-check-not=error:
// GRID: error: option 'grid-end': expected at least grid_begin, 1, got: 0.5
// RUN: not neuroshard-opt %s --neuroshard-plan="batch=-3" 2>&1 | FileCheck %s --check-prefix=BATCH --implicit-check-not=error:
// BATCH: error: batch.global_size: expected a whole number in [1, 2147483648], got: -3
// RUN: not neuroshard-opt %s --neuroshard-plan="batch=0" 2>&1 | FileCheck %s --check-prefix=NOBATCH --implicit-check-not=error:
// RUN: not neuroshard-opt %s --neuroshard-to-planned="batch=0" 2>&1 | FileCheck %s --check-prefix=NOBATCH --implicit-check-not=error:
// NOBATCH: error: batch.global_size: expected a whole number in [1, 2147483648], got: 0
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=4xCPU" 2>&1 | FileCheck %s --check-prefix=OTHER --implicit-check-not=error:
// OTHER: error: option 'topology' is '4xCPU', but the module has another topology; change one of them
// OTHER: note: the module's topology is here
// RUN: not neuroshard-opt %s --neuroshard-plan="topology=4xAbacus" 2>&1 | FileCheck %s --check-prefix=CLASS --implicit-check-not=error:
// CLASS: error: topology: {{.*}}Abacus
// RUN: not neuroshard-opt %s --neuroshard-plan="topologi=4xCPU" 2>&1 | FileCheck %s --check-prefix=MEANT --implicit-check-not=error:
// MEANT: error: 'neuroshard-plan' has no option 'topologi'; did you mean 'topology'?
// RUN: not neuroshard-opt %s --neuroshard-to-sharded="trainning=1" 2>&1 | FileCheck %s --check-prefix=PIPELINE --implicit-check-not=error:
// PIPELINE: error: 'neuroshard-to-sharded' has no option 'trainning'; did you mean 'training'?
// RUN: not neuroshard-opt %s --neuroshard-plan="colour=red" 2>&1 | FileCheck %s --check-prefix=UNKNOWN --implicit-check-not=error:
// UNKNOWN: error: 'neuroshard-plan' has no option 'colour'; --help lists them
// RUN: not neuroshard-opt %s --neuroshard-plan="plan-name=a" 2>&1 | FileCheck %s --check-prefix=NAME --implicit-check-not=error:
// NAME: error: 'neuroshard.table' op has the name 'a' meant for a plan

// MLIR would take the last of two values, and 010 for 8.
// RUN: not neuroshard-opt %s --neuroshard-plan="algorithm=size seed=1 algorithm=dim" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not neuroshard-opt %s --neuroshard-to-planned="algorithm=size seed=1 algorithm=dim" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not neuroshard-opt %s --pass-pipeline="builtin.module(neuroshard-plan{algorithm=size seed=1 algorithm=dim})" 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: {{.*}}option 'algorithm' is given twice; expected it once
// RUN: not neuroshard-opt %s --neuroshard-plan="seed=010" 2>&1 | FileCheck %s --check-prefix=OCTAL
// RUN: not neuroshard-opt %s --neuroshard-to-sharded="seed=010" 2>&1 | FileCheck %s --check-prefix=OCTAL
// OCTAL: error: {{.*}}option 'seed': expected a decimal number without leading zeros, got: '010'
// RUN: not neuroshard-opt %s --neuroshard-plan="seed=0x10" 2>&1 | FileCheck %s --check-prefix=HEX
// HEX: error: {{.*}}option 'seed': expected a decimal number without leading zeros, got: '0x10'

module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 10.0, latency = 1.0>]
  neuroshard.table @a : 100 x 8 x f32
}
