// The type in which results and gradients travel comes from the module or from the
// command line, which goes first, and ends in the manifest.

// RUN: rm -rf %t && split-file %s %t
// RUN: neuroshard-compile %t/bf16.mlir -o %t/a --topology 2xCPU --emit-ir
// RUN: FileCheck %s --check-prefix=MODULE --input-file=%t/a/manifest.json
// RUN: neuroshard-compile %t/bf16.mlir -o %t/b --topology 2xCPU --wire-type f16
// RUN: FileCheck %s --check-prefix=OPTION --input-file=%t/b/manifest.json
// MODULE: "wire_type": "bf16"
// OPTION: "wire_type": "f16"

// Results and gradients may have types of their own, from either place.
// RUN: sed 's/wire_type = "bf16"/wire_type = "f32\/bf16"/' %t/bf16.mlir > %t/pair.mlir
// RUN: neuroshard-compile %t/pair.mlir -o %t/k --topology 2xCPU
// RUN: FileCheck %s --check-prefix=PAIR --input-file=%t/k/manifest.json
// RUN: neuroshard-compile %t/bf16.mlir -o %t/l --topology 2xCPU --wire-type f32/bf16
// RUN: FileCheck %s --check-prefix=PAIR --input-file=%t/l/manifest.json
// PAIR: "wire_type": "f32/bf16"

// The partitioned module says it too.
// RUN: neuroshard-compile %t/a/ir/4-partitioned.mlir -o %t/c
// RUN: FileCheck %s --check-prefix=MODULE --input-file=%t/c/manifest.json

// A plan's provenance has the type, and the reserves; a plan for another one is followed with a
// warning.
// RUN: neuroshard-compile %t/bf16.mlir -o %t/e --topology 2xCPU --plan %t/a/plan.json 2>&1 | FileCheck %s --check-prefix=SAME --allow-empty
// SAME-NOT: warning:
// RUN: neuroshard-compile %t/bf16.mlir -o %t/e --topology 2xCPU --plan %t/a/plan.json --wire-type f32 2>&1 | FileCheck %s --check-prefix=WARNING
// WARNING: warning: the plan was made for results and gradients that travel as bf16; here they travel as f32, see the option 'wire-type'
// RUN: neuroshard-compile %t/bf16.mlir -o %t/g --topology 2xCPU --dense-reserve 1MiB
// RUN: FileCheck %s --check-prefix=RESERVE --input-file=%t/g/plan.json
// RESERVE: "wire_type"
// RESERVE: "bf16"
// RESERVE: "dense_reserve_bytes"
// RESERVE: "1048576"

// The search may have the choice; the plan keeps it, and goes before the module. An option goes first.
// RUN: neuroshard-compile %t/bf16.mlir -o %t/h --topology 2xCPU --wire-types f16
// RUN: FileCheck %s --check-prefix=OPTION --input-file=%t/h/manifest.json
// RUN: neuroshard-compile %t/bf16.mlir -o %t/i --topology 2xCPU --plan %t/h/plan.json 2>&1 | FileCheck %s --check-prefix=SAME --allow-empty
// RUN: FileCheck %s --check-prefix=OPTION --input-file=%t/i/manifest.json
// RUN: neuroshard-compile %t/bf16.mlir -o %t/j --topology 2xCPU --plan %t/h/plan.json --wire-type bf16 2>&1 | FileCheck %s --check-prefix=CHOSEN
// RUN: FileCheck %s --check-prefix=MODULE --input-file=%t/j/manifest.json
// CHOSEN: warning: the plan was made for results and gradients that travel as f16; here they travel as bf16

// RUN: sed 's/wire_type = "bf16"/wire_type = "f8"/' %t/a/ir/4-partitioned.mlir > %t/f8.mlir
// RUN: not neuroshard-compile %t/f8.mlir -o %t/d 2>&1 | FileCheck %s --check-prefix=F8
// F8: error: 'wire_type' of 'neuroshard.planning' must be f32, f16, bf16, int8 or fp8, or one of them for results and another for gradients, such as f32/bf16, got: "f8"
// F8-NOT: error:
// RUN: not neuroshard-compile %t/bf16.mlir -o %t/d --topology 2xCPU --wire-type f64 2>&1 | FileCheck %s --check-prefix=F64
// F64: error: option 'wire-type' must be f32, f16, bf16, int8 or fp8, or one of them for results and another for gradients, such as f32/bf16, got: 'f64'
// F64-NOT: error:
// RUN: not neuroshard-compile %t/bf16.mlir -o %t/d --topology 2xCPU --wire-type bf16/bf16 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: option 'wire-type' must be f32, f16, bf16, int8 or fp8, or one of them for results and another for gradients, such as f32/bf16, got: 'bf16/bf16'
// RUN: not ls %t/d

//--- bf16.mlir
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64, neuroshard.planning = {wire_type = "bf16"}} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}
