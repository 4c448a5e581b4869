// --version is that of the project, and of tools with the dialect also those of its bytecode and of LLVM.
// RUN: neuroshard-opt-raw --version | FileCheck %s --check-prefix=DIALECT --match-full-lines
// RUN: neuroshard-compile --version | FileCheck %s --check-prefix=DIALECT --match-full-lines
// RUN: neuroshard-translate --version | FileCheck %s --check-prefix=DIALECT --match-full-lines
// RUN: neuroshard-run --version | FileCheck %s --match-full-lines
// RUN: neuroshard-bench --version | FileCheck %s --match-full-lines
// DIALECT: neuroshard-{{opt|compile|translate}} {{[0-9]+\.[0-9]+\.[0-9]+}} (dialect bytecode {{[0-9]+}}, LLVM {{[0-9.]+}})
// CHECK: neuroshard-{{run|bench}} {{[0-9]+\.[0-9]+\.[0-9]+}}
