// The option cost-model: model files, what the plan remembers of them, and what is said of
// predictions that no measured model made.
// RUN: rm -rf %t && mkdir -p %t/none
// RUN: neuroshard-bench model %t/small.safetensors --device-class CPU --members 1
// RUN: neuroshard-opt %s --neuroshard-plan="cost-model=%t/small.safetensors" -o %t/planned.mlir \
// RUN:   --remarks-filter=neuroshard-plan 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: FileCheck %s < %t/planned.mlir

// CHECK: provenance {algorithm = "default", cost_model = "small+roofline",

// REMARK-DAG: Model {{.*}}predicted by the cost model 'small+roofline'
// REMARK-DAG: Model {{.*}}no measured communication model for this topology: the closed form predicts its exchanges
// REMARK-DAG: Model {{.*}}model 'small' was trained on simulated times, not on measured ones

// Without a measured model: the closed form, with a remark.
// RUN: env NEUROSHARD_MODELS=%t/none neuroshard-opt %s --neuroshard-plan -o %t/auto.mlir \
// RUN:   --remarks-filter=neuroshard-plan 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: neuroshard-opt %s --neuroshard-plan=cost-model=roofline -o %t/roofline.mlir
// RUN: diff %t/auto.mlir %t/roofline.mlir
// NONE-DAG: Model {{.*}}predicted by the cost model 'roofline'
// NONE-DAG: Model {{.*}}no measured compute model for device class CPU: the closed form predicts its compute
// A program of others beside which there are no models: which folder that was, and how to name another.
// RUN: cp neuroshard-opt-raw %t/own-opt
// RUN: %t/own-opt %s --neuroshard-plan -o %t/own.mlir \
// RUN:   --remarks-filter=neuroshard-plan 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: diff %t/own.mlir %t/roofline.mlir
// FOLDER-DAG: Model {{.*}}the folder of the shipped cost models is not there: '{{.*}}/share/neuroshard/models'; set the environment variable NEUROSHARD_MODELS to share/neuroshard/models of an installation, or to models of the sources
// FOLDER-DAG: Model {{.*}}no measured compute model for device class CPU
// Asked for by name, the closed form is what was wanted.
// RUN: neuroshard-opt %s --neuroshard-plan=cost-model=roofline -o /dev/null \
// RUN:   --remarks-filter=neuroshard-plan 2>&1 | FileCheck %s --check-prefix=ASKED --implicit-check-not="no measured"
// ASKED: Model {{.*}}predicted by the cost model 'roofline'

// A simulated model has to be named.
// RUN: env NEUROSHARD_MODELS=%t neuroshard-opt %s --neuroshard-plan -o %t/again.mlir
// RUN: diff %t/again.mlir %t/roofline.mlir

// RUN: head -c 1000 %t/small.safetensors > %t/short.safetensors
// RUN: not neuroshard-opt %s --neuroshard-plan="cost-model=%t/short.safetensors" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SHORT --implicit-check-not=error:
// SHORT: error: option 'cost-model': {{.*}}short.safetensors: not a sound safetensors file: it is truncated
// RUN: neuroshard-bench model %t/gpu.safetensors --device-class H200 --members 1
// RUN: not neuroshard-opt %s --neuroshard-plan="cost-model=%t/small.safetensors,%t/gpu.safetensors" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=CLASS --implicit-check-not=error:
// CLASS: error: option 'cost-model': model 'gpu' is for device class H200, of which the topology has no device
// RUN: not neuroshard-opt %s --neuroshard-plan="cost-model=%t/missing.safetensors" 2>&1 \
// RUN:   | FileCheck %s --check-prefix=MISSING --implicit-check-not=error:
// MISSING: error: option 'cost-model': {{.*}}missing.safetensors: cannot open

module attributes {neuroshard.batch = 64 : i64} {
  neuroshard.topology @cluster devices [#neuroshard.devices<2 x "CPU">]
    levels [#neuroshard.level<"node", groups = [2], bandwidth = 8.0, latency = 20.0>]
  neuroshard.table @a : 1000 x 64 x f32
  neuroshard.table @b : 100 x 8 x f32
}
