// Wrong input of every kind is one error and exit code 1.

// RUN: rm -rf %t && split-file %s %t

// RUN: not neuroshard-compile %t/missing.mlir -o %t/a 2>&1 | FileCheck %s --check-prefix=MISSING
// MISSING: error: cannot open input file '{{.*}}missing.mlir': No such file or directory
// MISSING-NOT: error:
// RUN: not neuroshard-compile %t/truncated.mlir -o %t/a 2>&1 | FileCheck %s --check-prefix=TRUNCATED
// TRUNCATED: truncated.mlir:2:1: error: custom op 'neuroshard.table' expected integer value
// TRUNCATED-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir 2>&1 | FileCheck %s --check-prefix=USAGE
// USAGE: --output is required
// RUN: not neuroshard-compile %t/model.mlir -o %t/a -O7 2>&1 | FileCheck %s --check-prefix=LEVEL
// LEVEL: expected a whole number in [0, 3], got: 7
// RUN: not neuroshard-compile %t/model.mlir -o %t/a 2>&1 | FileCheck %s --check-prefix=TOPOLOGY
// TOPOLOGY: error: a plan needs a topology
// TOPOLOGY-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 4xToaster 2>&1 | FileCheck %s --check-prefix=TOASTER
// TOASTER: error: {{.*}}Toaster
// TOASTER-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --plan %t/plan.json 2>&1 | FileCheck %s --check-prefix=PLAN
// PLAN: error: {{.*}}plan.json
// PLAN-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --plan %t/other.json 2>&1 | FileCheck %s --check-prefix=DEVICES
// DEVICES: error: {{.*}}other.json is a plan for 3 devices, the topology has 2
// DEVICES-NOT: error:
// RUN: not neuroshard-compile %S/Inputs/planned.mlir -o %t/a --plan %t/other.json 2>&1 | FileCheck %s --check-prefix=TWICE
// TWICE: error: 'neuroshard.plan' op exists already; --plan takes a module without a plan
// TWICE-NOT: error:
// RUN: not neuroshard-compile %t/vector.mlir -o %t/a --topology 1xCPU 2>&1 | FileCheck %s --check-prefix=VECTOR
// VECTOR: error: 'func.func' op is public, but host code cannot pass a value of type 'vector<4xf32>'; make the function private
// VECTOR-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --target-cpu toaster 2>&1 | FileCheck %s --check-prefix=CPU
// CPU: error: {{.*}}toaster
// CPU-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/no/where --topology 2xCPU --target-cpu i386 2>&1 | FileCheck %s --check-prefix=MODE
// MODE: error: target cpu 'i386' cannot run code for x86_64{{.*}}: it has no 64-bit mode; give one that has, such as x86-64, or host
// MODE-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --training 2>&1 | FileCheck %s --check-prefix=TRAINING
// TRAINING: error: {{.*}}optimizer
// TRAINING-NOT: error:
// RUN: not neuroshard-compile %t/model.mlir -o %t/no/where --topology 2xCPU 2>&1 | FileCheck %s --check-prefix=NOWHERE
// NOWHERE: error: cannot create output '{{.*}}where': No such file or directory
// NOWHERE-NOT: error:
// RUN: not neuroshard-compile %t/dense.mlir -o %t/a --topology 2xCPU 2>&1 | FileCheck %s --check-prefix=DENSE
// DENSE: error: {{.*}}lookup
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --seed -1 2>&1 | FileCheck %s --check-prefix=SEED
// SEED: --seed: expected a whole number of at least 0, got: -1
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --seed 18446744073709551616 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: --seed: expected a whole number of at least 0, got: 18446744073709551616
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --deadline-s 1e400 2>&1 | FileCheck %s --check-prefix=DEADLINE
// RUN: not neuroshard-compile %t/model.mlir -o %t/a --topology 2xCPU --deadline-s '' 2>&1 | FileCheck %s --check-prefix=DEADLINE
// DEADLINE: --deadline-s: expected a number, got:
// RUN: not neuroshard-compile %S/Inputs/planned.mlir -o %t/a --algorithm dim 2>&1 | FileCheck %s --check-prefix=COMPLETE
// COMPLETE: error: option 'algorithm' has no effect: the plan is complete, so nothing is searched
// COMPLETE-NOT: error:
// RUN: neuroshard-compile %t/model.mlir -o %t/whole --topology 2xCPU --emit-ir
// RUN: not neuroshard-compile %t/whole/ir/4-partitioned.mlir -o %t/a --topology 2xCPU --entry forward --training 2>&1 | FileCheck %s --check-prefix=PARTITIONED
// PARTITIONED: error: --entry, --training, --topology: no effect on this input, which is partitioned already
// PARTITIONED-NOT: error:
// RUN: ls %t | FileCheck %s --check-prefix=LEFT
// LEFT-NOT: partial
// RUN: not ls %t/a

//--- truncated.mlir
neuroshard.table @t :
//--- model.mlir
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
}
//--- plan.json
{"schema": "neuroshard.plan.v1", "shards": [
//--- other.json
{"schema": "neuroshard.plan.v1", "device_count": 3, "shards": [
  {"name": "t", "table": "t", "rows": [0, 10], "cols": [0, 4], "devices": [2]}]}
//--- vector.mlir
!ids = !neuroshard.jagged<["a"], i64>
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%ids: !ids) -> tensor<?x4xf32> {
    %r = neuroshard.lookup sum @t[%ids, "a"] : !ids -> tensor<?x4xf32>
    return %r : tensor<?x4xf32>
  }
  func.func @other(%v: vector<4xf32>) -> vector<4xf32> {
    return %v : vector<4xf32>
  }
}
//--- dense.mlir
module attributes {neuroshard.batch = 8 : i64} {
  neuroshard.table private @t : 10 x 4 x f32
  func.func @forward(%x: tensor<?xf32>) -> tensor<?xf32> {
    return %x : tensor<?xf32>
  }
}
