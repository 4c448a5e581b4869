// Bytecode of a newer version is refused, with both versions named.
// RUN: not neuroshard-opt-raw %S/newer.mlirbc 2>&1 | FileCheck %s

// CHECK: error: neuroshard bytecode has version 10, this build reads versions 1 to 9
