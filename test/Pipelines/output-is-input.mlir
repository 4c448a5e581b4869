// The tool's output may not be its input, which would be lost.
// RUN: cp %s %t.mlir
// RUN: not neuroshard-opt %t.mlir -o %t.mlir 2>&1 | FileCheck %s
// RUN: diff %s %t.mlir
// RUN: neuroshard-opt %t.mlir -o %t.other && test -s %t.other
// RUN: neuroshard-opt %t.mlir -o /dev/null

// CHECK: error: {{.*}}.mlir: is the input, too; expected another file after -o
module {}
