// The tool's output may not be a file that it reads, which would be lost.
// RUN: cp %s %t.mlir
// RUN: not neuroshard-translate --mlir-to-workload %t.mlir -o %t.mlir 2>&1 | FileCheck %s
// RUN: not neuroshard-translate --mlir-to-workload -o=%t.mlir %t.mlir 2>&1 | FileCheck %s
// RUN: not neuroshard-translate --json-to-plan --module=%t.mlir %s -o %t.mlir 2>&1 | FileCheck %s
// RUN: diff %s %t.mlir
// RUN: not neuroshard-translate --mlir-to-workload %t.mlir -o %t.other 2>&1 | FileCheck %s --check-prefix=OTHER

// CHECK: error: {{.*}}.mlir: is an input, too; expected another file after -o
// OTHER-NOT: is an input
module {}
